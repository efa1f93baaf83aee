import MediaControl
import MediaEngine
import Primitives
import RTP

/// What subscribers send back: transport-wide feedback and NACKs, from the encrypted datagram to its effects.
enum FeedbackBenchmarks {
    static func run(_ runner: Runner) throws {
        try transportWide(runner)
        try nack(runner)
    }

    /// A browser reports every 50 to 100 ms which packets arrived: here 20 of them.
    private static func transportWide(_ runner: Runner) throws {
        guard runner.wants("feedback: TWCC of 20 packets") else { return }
        let room = try EngineRoom(subscribers: 1)
        for frame in room.frames(50, sizes: ForwardBenchmarks.sizes) { room.forward(frame) }
        let operations = 400
        var first: Int64 = 1
        let datagrams = (0..<(operations * (Runner.rounds + 1))).map { count in
            room.compound(of: 0) { writer in
                let arrivals = (0..<20).map {
                    PacketArrival(sequence: first + Int64($0), time: MonotonicTime(milliseconds: 1_000 + Int64($0)))
                }
                _ = writer.appendTransportFeedback(
                    senderSSRC: 1, mediaSSRC: 2, feedbackCount: UInt8(truncatingIfNeeded: count), from: first,
                    arrivals: arrivals.span)
                first = first == 161 ? 1 : first + 20
            }
        }
        var next = 0
        runner.time("feedback: TWCC of 20 packets", operations: operations) {
            for datagram in datagrams[next..<(next + operations)] { room.feedback(datagram, from: 0) }
            next += operations
        }
    }

    /// One NACK for one packet, answered by RTX.
    private static func nack(_ runner: Runner) throws {
        guard runner.wants("feedback: NACK answered") else { return }
        let room = try EngineRoom(subscribers: 1)
        var sent: UInt16 = 0
        for frame in room.frames(60, sizes: ForwardBenchmarks.sizes) { room.forward(frame) }
        sent = room.firstSequence
        let operations = 100
        let datagrams = (0..<(operations * (Runner.rounds + 1))).map { count in
            room.compound(of: 0) { writer in
                writer.beginNACK(senderSSRC: 1, mediaSSRC: 0xa000_0002)
                writer.addMissing(sent &+ UInt16(100 + count % 100))
            }
        }
        var next = 0
        runner.time("feedback: NACK answered", operations: operations) {
            for datagram in datagrams[next..<(next + operations)] {
                room.pass(.milliseconds(10))
                room.feedback(datagram, from: 0)
            }
            next += operations
        }
        runner.note(
            "feedback: NACKs answered, of all", Double(room.engine.statistics.retransmissionsSent) / Double(next))
    }
}

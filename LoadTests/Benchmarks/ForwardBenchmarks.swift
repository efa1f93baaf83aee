import CInstruments
import Measuring
import MediaControl
import MediaEngine
import Primitives

/// The whole engine without sockets: a frame of four packets arrives and is sent to every subscriber.
enum ForwardBenchmarks {
    static let receivers = [1, 16, 256, 1_000]
    static let sizes = [1_080, 1_080, 1_079, 1_079]

    static func run(_ runner: Runner) throws {
        if runner.wants("million") { try countSins(runner) }
        guard runner.wants("forward") else { return }
        var perReceiver: [Double] = []
        let alone = try measure(runner, receivers: 0)
        for count in receivers {
            let all = try measure(runner, receivers: count)
            perReceiver.append((all - alone) / Double(count * sizes.count))
        }
        for (count, time) in zip(receivers, perReceiver) {
            let unit = runner.referenceNanoseconds
            runner.note(
                Figure(
                    name: "forward: one packet to one of \(count)", unit: .nanoseconds, value: time,
                    normalized: time / unit))
        }
        runner.note("forward: 1,000 receivers against 16", perReceiver[3] / perReceiver[1])
        // The cost of what a member receives is added to that of what it sends; its reports are omitted, which makes it look cheaper.
        let received = 9 * Double(sizes.count) * perReceiver[1]
        runner.note("forward: publish-only against receiving 9", alone / (alone + received))
        let codecs = try [Codec.vp8, .vp9, .h264].map { try measure(runner, receivers: 16, codec: $0) }
        runner.note("forward: dearest of three codecs : cheapest", (codecs.max() ?? 0) / (codecs.min() ?? 1))
        // The dependency descriptor of each subscriber's frame is written anew, because one of the layers that the stream announces is missing.
        runner.note("forward: AV1 : VP8", try measure(runner, receivers: 16, codec: .av1) / codecs[0])
    }

    /// Nanoseconds of one turn.
    private static func measure(_ runner: Runner, receivers: Int, codec: Codec? = nil) throws -> Double {
        let room = try EngineRoom(subscribers: receivers, codec: codec ?? .vp8)
        let turns = max(4, 2_000 / max(1, receivers))
        room.forward(room.frames(1, sizes: sizes)[0])
        let frames = room.frames(turns * (Runner.rounds + 1), sizes: sizes, keyframeFirst: false)
        var next = 0
        let name = "forward: turn of 4 packets to \(receivers)" + (codec.map { ", \($0)" } ?? "")
        defer { precondition(room.engine.statistics.packetsForwarded >= UInt64(turns * receivers * sizes.count)) }
        return runner.time(name, operations: turns) {
            for frame in frames[next..<(next + turns)] {
                room.pass(.milliseconds(33))
                room.forward(frame)
            }
            next += turns
        }
    }

    /// What another million packets, in the same virtual time and to the same receivers, allocate, lock and retain: nothing.
    ///
    /// Two runs of equal length, one with twice the packets. So the periodic work (allocation of layers once per second, reports,
    /// consent checks in libnice) is in both and cancels out, and the rest is the cost of packets.
    private static func countSins(_ runner: Runner) throws {
        let few = try sins(packetsATurn: 4), many = try sins(packetsATurn: 8)
        let packets = Double(many.packets - few.packets)
        func more(_ count: KeyPath<cinstruments_counts, UInt64>) -> Double {
            Double(many.counts[keyPath: count]) - Double(few.counts[keyPath: count])
        }
        runner.note("a million packets more: allocations", more(\.allocations))
        runner.note("a million packets more: locks", more(\.locks))
        runner.note("a million packets more: retains a packet", more(\.retains) / packets)
    }

    private static func sins(packetsATurn count: Int) throws -> (counts: cinstruments_counts, packets: Int) {
        let receivers = 105, turns = 2_400
        let room = try EngineRoom(subscribers: receivers)
        let sizes = (0..<count).map { $0 % 4 < 2 ? 1_080 : 1_079 }
        // First, histories and rings grow to their bounds.
        for frame in room.frames(1_200, sizes: sizes) {
            room.pass(.milliseconds(1))
            room.forward(frame)
        }
        let frames = room.frames(turns, sizes: sizes, keyframeFirst: false)
        let before = counts(on: true)
        for frame in frames {
            room.pass(.milliseconds(1))
            room.forward(frame)
        }
        let after = counts(on: false)
        let counts = cinstruments_counts(
            allocations: after.allocations - before.allocations, frees: after.frees - before.frees,
            locks: after.locks - before.locks, retains: after.retains - before.retains,
            releases: after.releases - before.releases)
        return (counts, turns * count * receivers)
    }

    private static func counts(on: Bool) -> cinstruments_counts {
        let tracing: Int32 =
            CommandLine.arguments.contains("--trace") ? 1 : CommandLine.arguments.contains("--trace-retains") ? 2 : 0
        if !on { cinstruments_trace(0) }
        _ = cinstruments_count_references(on ? 1 : 0)
        let counts = cinstruments_read()
        if on { cinstruments_trace(tracing) }
        return counts
    }
}

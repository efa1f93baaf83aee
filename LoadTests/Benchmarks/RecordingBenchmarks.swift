import MP4
import MediaControl
import MediaEngine
import Primitives
import RTP
import Recording

/// What recording costs: the media thread for each packet that it passes on, and the recorder's thread for each packet that it writes.
enum RecordingBenchmarks {
    static func run(_ runner: Runner) throws {
        guard runner.wants("recording") else { return }
        try handOn(runner)
        muxing(runner, "recording: VP8 packet to file", codec: .vp8)
        muxing(runner, "recording: H.264 packet to file", codec: .h264)
    }

    /// A turn of four packets without viewers, recorded and not: the difference is the cost for the media thread.
    private static func handOn(_ runner: Runner) throws {
        let times = try [false, true].map { isRecorded in
            let room = try EngineRoom(subscribers: 0)
            if isRecorded { room.record() }
            let turns = 2_000
            room.forward(room.frames(1, sizes: ForwardBenchmarks.sizes)[0])
            let frames = room.frames(
                turns * (Runner.rounds + 1), sizes: ForwardBenchmarks.sizes, keyframeFirst: false)
            var next = 0
            return runner.time(
                "recording: turn of 4 packets, \(isRecorded ? "recorded" : "not recorded")", operations: turns
            ) {
                for frame in frames[next..<(next + turns)] {
                    room.pass(.milliseconds(33))
                    room.forward(frame)
                    consume(room.takeRecords())
                }
                next += turns
            }
        }
        let each = (times[1] - times[0]) / Double(ForwardBenchmarks.sizes.count)
        runner.note(
            Figure(
                name: "recording: one packet to the recorder", unit: .nanoseconds, value: each,
                normalized: each / runner.referenceNanoseconds))
    }

    /// From packets to the bytes of a file, which are discarded.
    private static func muxing(_ runner: Runner, _ name: String, codec: Codec) {
        var source = PacketSource(ssrc: 1, codec: codec)
        // 1 Mbit/s at 30 frames per second, and a keyframe every ten seconds.
        let frames = (0..<300).map { source.frame(keyframe: $0 == 0, sizes: ForwardBenchmarks.sizes) }
        let packets = frames.enumerated().flatMap { index, frame in
            frame.map { (bytes: marked($0, codec), arrival: MonotonicTime(milliseconds: Int64(index) * 33)) }
        }
        runner.time(name, operations: packets.count) {
            var recorder = TrackRecorder()
            var steps: [RecordingStep] = []
            var bytes = 0
            for packet in packets {
                recorder.receive(packet.bytes.span.bytes, arrival: packet.arrival, into: &steps)
                for case .write(let write) in steps { bytes += write.bytes.count }
                steps.removeAll(keepingCapacity: true)
            }
            precondition(recorder.totals.framesWritten >= 299)
            consume(bytes)
        }
    }

    /// The packet with the recorder's payload type, and without extensions.
    static func marked(_ packet: [UInt8], _ codec: Codec) -> [UInt8] {
        guard let header = RTPHeader(packet.span.bytes) else { preconditionFailure("the source makes RTP") }
        var bytes = Array(packet[..<12])
        bytes[0] = 0x80
        bytes[1] = bytes[1] & 0x80 | RecordedStreamFormat.payloadType(of: codec)
        return bytes + packet[header.payloadOffset...]
    }
}

extension EngineRoom {
    /// Discards the records of the last turn; returns their size in bytes.
    func takeRecords() -> Int {
        var count = 0
        engine.handOnRecords { bytes in
            count = bytes.count
            return (.max, true)
        }
        return count
    }
}

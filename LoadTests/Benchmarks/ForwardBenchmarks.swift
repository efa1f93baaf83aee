import CInstruments
import Measuring
import Primitives

/// The whole engine without sockets: a picture of four packets comes in and leaves for every subscriber.
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
    }

    /// Nanoseconds of one turn.
    private static func measure(_ runner: Runner, receivers: Int) throws -> Double {
        let room = try EngineRoom(subscribers: receivers)
        let turns = max(4, 2_000 / max(1, receivers))
        room.forward(room.frames(1, sizes: sizes)[0])
        let frames = room.frames(turns * (Runner.rounds + 1), sizes: sizes, keyframeFirst: false)
        var next = 0
        return runner.time("forward: turn of 4 packets to \(receivers)", operations: turns) {
            for frame in frames[next..<(next + turns)] {
                room.pass(.milliseconds(33))
                room.forward(frame)
            }
            next += turns
        }
    }

    /// Allocations, locks and reference counting over a million packets in steady state.
    ///
    /// The million passes in two virtual seconds, a turn each millisecond, so that the measured part has no consent checks:
    /// libnice allocates twice for each, once in five seconds a peer.
    private static func countSins(_ runner: Runner) throws {
        let few = try sins(receivers: 1, turns: 2_400)
        let many = try sins(receivers: 105, turns: 2_400)
        let packets = Double(many.packets - few.packets)
        runner.note("million packets: allocations", Double(many.counts.allocations))
        runner.note("million packets: locks", Double(many.counts.locks))
        runner.note(
            "million packets: retains a receiver's packet", Double(many.counts.retains &- few.counts.retains) / packets)
    }

    private static func sins(receivers: Int, turns: Int) throws -> (counts: cinstruments_counts, packets: Int) {
        let room = try EngineRoom(subscribers: receivers)
        // Histories and rings grow to a second of packets first; then all consent checks of the coming five seconds are done.
        for frame in room.frames(1_200, sizes: sizes) {
            room.pass(.milliseconds(2))
            room.forward(frame)
        }
        room.pass(.milliseconds(6_000))
        let frames = room.frames(turns + 1, sizes: sizes, keyframeFirst: false)
        room.forward(frames[0])
        let before = counts(on: true)
        for frame in frames[1...] {
            room.pass(.milliseconds(1))
            room.forward(frame)
        }
        let after = counts(on: false)
        let counts = cinstruments_counts(
            allocations: after.allocations - before.allocations, frees: after.frees - before.frees,
            locks: after.locks - before.locks, retains: after.retains - before.retains,
            releases: after.releases - before.releases)
        return (counts, turns * sizes.count * receivers)
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

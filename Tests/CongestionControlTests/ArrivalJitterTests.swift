import Primitives
import Testing

@testable import CongestionControl

@Suite("Arrival jitter")
struct ArrivalJitterTests {
    /// Four packets in each of 30 frames a second, `delay` milliseconds each.
    private func value(_ delay: (Int, inout RandomSource) -> Double) -> Double {
        var jitter = ArrivalJitter(), random = RandomSource(seed: 5)
        for packet in 0..<2_000 {
            let sent = Int64(packet / 4) * 33_000 + Int64(packet % 4) * 100
            jitter.add(sent: sent, arrival: sent + Int64(delay(packet, &random) * 1e3))
        }
        return Double(jitter.value) / 1e3
    }

    @Test(
        "H4: for evenly distributed delays the jitter is about half of the spread above the minimum",
        arguments: [60.0, 120, 200])
    func spread(milliseconds: Double) {
        let found = value { _, random in Double.random(in: 0...milliseconds, using: &random) }
        #expect((0.3...0.7).contains(found / milliseconds), "\(found) ms of \(milliseconds)")
    }

    @Test(
        "A queue that grows, drains or fluctuates is not jitter: no packet overtakes another in it",
        arguments: [-0.02, 0, 0.3])
    func queue(millisecondsAPacket: Double) {
        var last = 0.0
        let found = value { packet, random in
            let own = 100 + Double(packet) * millisecondsAPacket + Double.random(in: 0...50, using: &random)
            // In order: no earlier than the packet before, which left up to 33 ms before.
            last = max(own, last - (packet % 4 == 0 ? 32.7 : 0.1))
            return last
        }
        #expect(found == 0, "\(found) ms")
    }

    @Test(
        "H4: a slope of scattered delays is neither overuse nor a reset; a group that arrives before its predecessor counts, too"
    )
    func groupsBeforeOthers() {
        var groups = ArrivalGroups(), random = RandomSource(seed: 6)
        var sum: Int64 = 0
        for frame in 0..<1_000 {
            let sent = Int64(frame) * 20_000
            let deltas = groups.add(sent: sent, arrival: sent + Int64.random(in: 0...120_000, using: &random))
            sum += deltas.map { $0.arrival - $0.sent } ?? 0
        }
        #expect(abs(sum) <= 120_000, "delays end where they began, give or take one: \(sum) us")
    }

    @Test("A receiver clock that jumps back does not count as a lower delay")
    func clockJump() {
        var groups = ArrivalGroups()
        var least: Int64 = 0
        for frame in 0..<100 {
            let sent = Int64(frame) * 20_000
            let deltas = groups.add(sent: sent, arrival: sent - (frame < 50 ? 0 : 2_000_000))
            least = min(least, deltas.map { $0.arrival - $0.sent } ?? 0)
        }
        #expect(least == 0)
    }
}

import Primitives
import Testing

@testable import Simulation

@Suite("NACKs of a simulated subscriber")
struct RepairListTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    @Test("A whole keyframe ends the requests for packets before it, and gives none up")
    func clearedByKeyframe() {
        var list = RepairList()
        _ = list.received(10, at: at(0))
        _ = list.received(14, at: at(10))
        _ = list.received(20, at: at(20))
        var gaveUp = false
        #expect(
            list.dueRequests(at: at(20), interval: .milliseconds(50), gaveUp: &gaveUp) == [
                11, 12, 13, 15, 16, 17, 18, 19,
            ])
        list.clear(before: 16)
        #expect(list.dueRequests(at: at(70), interval: .milliseconds(50), gaveUp: &gaveUp) == [16, 17, 18, 19])
        list.clear(before: 21)
        #expect(list.isEmpty)
        #expect(list.nextDeadline == .distantFuture)
        #expect(!gaveUp)
    }

    @Test("A packet that never arrives is requested ten times, then given up")
    func givenUp() {
        var list = RepairList()
        _ = list.received(1, at: at(0))
        _ = list.received(3, at: at(0))
        var gaveUp = false, asked = 0
        for turn in 0..<12 where !list.isEmpty {
            asked += list.dueRequests(at: at(Int64(turn) * 50), interval: .milliseconds(50), gaveUp: &gaveUp).count
        }
        #expect(asked == 10)
        #expect(gaveUp)
    }
}

import Primitives
import Testing

@testable import CongestionControl

@Suite("Messages beside media")
struct DataPaceTests {
    private static func moment(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    /// A pace at half of 1 Mbit/s whose messages wait and leave all the time, with a report each 50 ms.
    private static func busy(
        _ pace: inout DataPace, from start: Int64 = 1_000, milliseconds: Int64, wait: Int64 = 0, isGrowing: Bool = false
    ) -> [Bool] {
        stride(from: start, to: start + milliseconds, by: 50).map { time in
            let allowed = pace.allowance(estimate: 1_000_000, at: moment(time))
            pace.sent(max(allowed, 0), at: moment(time))
            _ = pace.limited(at: moment(time))
            return pace.update(estimate: 1_000_000, isGrowing: isGrowing, wait: wait, at: moment(time))
        }
    }

    @Test("The first messages have half of the estimate, in bursts of two packets; what waits longer saves up nothing")
    func start() {
        var pace = DataPace()
        let first = pace.allowance(estimate: 1_000_000, at: Self.moment(1_000))
        #expect(first == 2_400 && pace.bitsPerSecond == 500_000)
        pace.sent(2_400, at: Self.moment(1_000))
        let soon = pace.allowance(estimate: 1_000_000, at: Self.moment(1_010))
        let late = pace.allowance(estimate: 1_000_000, at: Self.moment(60_000))
        #expect(soon == 625 && late == 2_400)
        pace.sent(4_900, at: Self.moment(60_000))
        let next = pace.limited(at: Self.moment(60_000))
        #expect(next > Self.moment(60_039))
    }

    @Test(
        "While messages wait and the queue is empty the rate grows; where none wait, or some milliseconds are queued, it does not"
    )
    func growth() {
        var pace = DataPace()
        #expect(Self.busy(&pace, milliseconds: 3_000).allSatisfy { !$0 })
        let grown = pace.bitsPerSecond
        #expect(grown > 20_000_000)
        _ = pace.update(estimate: 1_000_000, isGrowing: false, wait: 0, at: Self.moment(10_000))
        _ = Self.busy(&pace, from: 11_000, milliseconds: 1_000, wait: 12_000)
        #expect(pace.bitsPerSecond == grown)
    }

    @Test(
        "A growing queue is blamed on messages that were sent lately, and they yield, down to a tenth of the estimate; then it is not their fault"
    )
    func yields() {
        var pace = DataPace()
        let blamed = Self.busy(&pace, milliseconds: 5_000, wait: 40_000, isGrowing: true)
        #expect(blamed[0] && pace.bitsPerSecond == 100_000 && blamed.last == false)
        // A long queue is left faster.
        var slow = DataPace(), fast = DataPace()
        _ = Self.busy(&slow, milliseconds: 100, wait: 40_000)
        _ = Self.busy(&fast, milliseconds: 100, wait: 100_000)
        #expect(slow.bitsPerSecond == 300_000 && fast.bitsPerSecond == 150_000)
    }

    @Test("Without messages in the last half second a growing queue is not theirs")
    func idle() {
        var pace = DataPace()
        var blamed = [pace.update(estimate: 1_000_000, isGrowing: true, wait: 200_000, at: Self.moment(1_000))]
        _ = pace.allowance(estimate: 1_000_000, at: Self.moment(1_000))
        pace.sent(1_200, at: Self.moment(1_000))
        blamed.append(pace.update(estimate: 1_000_000, isGrowing: true, wait: 200_000, at: Self.moment(1_500)))
        blamed.append(pace.update(estimate: 1_000_000, isGrowing: true, wait: 200_000, at: Self.moment(1_700)))
        #expect(blamed == [false, true, false])
    }
}

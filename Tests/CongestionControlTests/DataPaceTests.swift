import Primitives
import Testing

@testable import CongestionControl

@Suite("Messages beside media")
struct DataPaceTests {
    private static func moment(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    private static func report(
        estimate: Double = 1_000_000, media: Double = 600_000, isMediaShort: Bool = false, wait: Int64 = 0,
        isGrowing: Bool = false,
        jitter: Int64 = 0, isContested: Bool = false
    ) -> DataPace.Report {
        .init(
            estimate: estimate, media: media, isMediaShort: isMediaShort, isGrowing: isGrowing, wait: wait,
            jitter: jitter,
            isContested: isContested)
    }

    /// A pace on a path of 1 Mbit/s whose messages wait and leave all the time, with a report each 50 ms: whether messages were blamed, each time.
    private static func busy(
        _ pace: inout DataPace, from start: Int64 = 1_000, milliseconds: Int64, _ report: DataPace.Report = report()
    ) -> [Bool] {
        stride(from: start, to: start + milliseconds, by: 50).map { time in
            let allowed = pace.allowance(estimate: 1_000_000, at: moment(time))
            pace.sent(max(allowed, 0), at: moment(time))
            _ = pace.limited(at: moment(time))
            return pace.update(report, at: moment(time))
        }
    }

    @Test("The first messages have a fifth of the estimate, a packet at a time; what waits longer saves up nothing")
    func start() {
        var pace = DataPace()
        let first = pace.allowance(estimate: 1_000_000, at: Self.moment(1_000))
        #expect(first == 1_200 && pace.bitsPerSecond == 200_000)
        pace.sent(1_200, at: Self.moment(1_000))
        let soon = pace.allowance(estimate: 1_000_000, at: Self.moment(1_010))
        let late = pace.allowance(estimate: 1_000_000, at: Self.moment(60_000))
        #expect(soon == 250 && late == 1_200)
        pace.sent(3_700, at: Self.moment(60_000))
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
        #expect(grown > 8_000_000)
        _ = Self.busy(&pace, from: 4_000, milliseconds: 1_000, Self.report(wait: 22_000))
        _ = pace.update(Self.report(), at: Self.moment(6_000))
        #expect(pace.bitsPerSecond == grown)
        // What was found is old after a pause.
        _ = pace.allowance(estimate: 1_000_000, at: Self.moment(8_000))
        #expect(pace.bitsPerSecond == 1_000_000)
    }

    @Test(
        "A growing queue is blamed on messages that were sent lately, and they yield, down to what keeps a receiver's channel; then it is not their fault"
    )
    func yields() {
        var pace = DataPace()
        let blamed = Self.busy(&pace, milliseconds: 5_000, Self.report(wait: 40_000, isGrowing: true))
        #expect(blamed[3] && pace.bitsPerSecond == DataPace.least && blamed.last == false)
        // A long queue is left faster.
        var slow = DataPace()
        _ = Self.busy(&slow, milliseconds: 2_000)
        let full = slow.bitsPerSecond
        var fast = slow
        _ = Self.busy(&slow, from: 3_000, milliseconds: 100, Self.report(wait: 40_000))
        _ = Self.busy(&fast, from: 3_000, milliseconds: 100, Self.report(wait: 100_000))
        #expect(full > 1_000_000 && slow.bitsPerSecond == full * 0.6 && fast.bitsPerSecond == full * 0.3)
    }

    @Test(
        "While media wants more than it has, messages get three fifths of what it leaves of the estimate, however short the queue is"
    )
    func mediaShort() {
        var pace = DataPace()
        _ = Self.busy(&pace, milliseconds: 5_000, Self.report(media: 700_000, isMediaShort: true))
        #expect(pace.bitsPerSecond == 180_000)
        _ = Self.busy(&pace, from: 6_000, milliseconds: 1_000, Self.report(media: 950_000, isMediaShort: true))
        #expect(pace.bitsPerSecond == DataPace.least)
        _ = Self.busy(&pace, from: 7_000, milliseconds: 3_000, Self.report(media: 950_000))
        #expect(pace.bitsPerSecond > 1_000_000)
    }

    @Test(
        "On a narrow path messages have in any case what media leaves, and a fifth where it leaves less",
        arguments: [(190_000, 110_000), (280_000, 60_000), (40_000, DataPace.least)] as [(Double, Double)])
    func narrow(media: Double, expected: Double) {
        var pace = DataPace()
        let report = Self.report(estimate: 300_000, media: media, wait: 200_000, isGrowing: true)
        _ = Self.busy(&pace, milliseconds: 5_000, report)
        #expect(pace.bitsPerSecond == expected)
    }

    @Test(
        "What jitter explains is no queue; beside a flow that keeps the queue full messages have half of the estimate")
    func others() {
        var pace = DataPace()
        #expect(Self.busy(&pace, milliseconds: 1_000, Self.report(wait: 80_000, jitter: 60_000)).allSatisfy { !$0 })
        #expect(pace.bitsPerSecond == 200_000)
        _ = Self.busy(&pace, from: 3_000, milliseconds: 5_000, Self.report(wait: 200_000, isContested: true))
        #expect(pace.bitsPerSecond == 500_000)
    }

    @Test(
        "A lone message is not what fills a queue, and what leaves beyond the credit is paid for within a tenth of a second"
    )
    func lone() {
        var pace = DataPace()
        _ = pace.allowance(estimate: 1_000_000, at: Self.moment(1_000))
        pace.sent(1_200, at: Self.moment(1_000))
        let isBlamed = pace.update(Self.report(wait: 200_000, isGrowing: true), at: Self.moment(1_100))
        #expect(!isBlamed)
        pace.sent(10_000_000, at: Self.moment(1_200))
        let allowed = pace.allowance(estimate: 1_000_000, at: Self.moment(1_300))
        #expect(allowed > 0)
    }

    @Test("Without messages in the last half second a growing queue is not theirs")
    func idle() {
        var pace = DataPace()
        let full = Self.report(wait: 200_000, isGrowing: true)
        var blamed = [pace.update(full, at: Self.moment(1_000))]
        _ = pace.allowance(estimate: 1_000_000, at: Self.moment(1_000))
        pace.sent(6_000, at: Self.moment(1_000))
        blamed.append(pace.update(full, at: Self.moment(1_500)))
        blamed.append(pace.update(full, at: Self.moment(1_700)))
        #expect(blamed == [false, true, false])
    }
}

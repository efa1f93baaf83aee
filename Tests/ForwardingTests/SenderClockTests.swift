import Primitives
import Testing

@testable import Forwarding

@Suite("Sender clock")
struct SenderClockTests {
    @Test(
        "The fraction of a second in a report's NTP time counts: two layers' reports in one second lie as far apart as they say"
    )
    func fraction() {
        let first = SenderClock(ntp: 100 << 32 | 0x4000_0000, timestamp: 9_000, arrival: .zero)
        let second = SenderClock(ntp: 100 << 32 | 0xc000_0000, timestamp: 500, arrival: .zero)
        #expect(first.moment(of: 9_000, clockRate: 90_000) == .milliseconds(100_250))
        #expect(
            second.moment(of: 500, clockRate: 90_000) - first.moment(of: 9_000, clockRate: 90_000) == .milliseconds(500)
        )
        #expect(first.moment(of: 9_000 + 45_000, clockRate: 90_000) == .milliseconds(100_750))
    }

    @Test("A sender without a wall clock has none: its subscribers' reports would have a time that stands still")
    func withoutWallClock() {
        var timeline = LayerTimeline()
        _ = timeline.extend(9_000)
        timeline.received(ntp: 0, timestamp: 9_000, at: .zero)
        #expect(timeline.clock == nil)
        let moment: UInt64 = 100 << 32
        timeline.received(ntp: moment, timestamp: 9_000, at: .zero)
        #expect(timeline.clock?.ntp == moment)
    }
}

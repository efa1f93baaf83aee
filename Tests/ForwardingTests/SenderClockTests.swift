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
}

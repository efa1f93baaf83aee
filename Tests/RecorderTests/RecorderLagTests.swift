import Primitives
import Testing

@testable import Recorder

@Suite("How long records wait for the recorder")
struct RecorderLagTests {
    private static func moment(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    @Test("It is as the thread reports it, and grows with the thread's silence when a report is overdue")
    func hangs() {
        let lag = RecorderLag()
        #expect(lag.value(at: Self.moment(60_000)) == .zero, "a thread that has not begun")
        lag.report(.milliseconds(20), at: Self.moment(60_000))
        let seen = [0, 1_250, 1_270, 1_271, 11_250].map { lag.value(at: Self.moment(60_000 + $0)).milliseconds }
        #expect(seen == [20, 20, 20, 21, 10_000])
        lag.report(.seconds(10), at: Self.moment(71_250))
        #expect(lag.value(at: Self.moment(71_250)) == .seconds(10))
        lag.report(.zero, at: Self.moment(72_250))
        #expect(lag.value(at: Self.moment(72_250)) == .zero)
        lag.end()
        #expect(lag.value(at: Self.moment(600_000)) == .zero, "a thread that has ended")
    }
}

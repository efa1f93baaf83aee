import Primitives
import Synchronization

/// How long records wait for the recorder's thread.
///
/// The thread itself reports it every second; while it hangs in a write it cannot. Then its silence counts: records that arrive in the rings meanwhile wait at
/// least as long as the report is overdue.
final class RecorderLag: Sendable {
    /// A report follows the last one within this: the interval of the desk, and that at which the thread checks whether it is due.
    static let reportInterval = RecorderDesk.lookInterval + RecorderThread.advanceInterval

    private let last = Mutex<(lag: TimeSpan, moment: MonotonicTime)?>(nil)

    /// The longest that a record has waited since the last report.
    func report(_ lag: TimeSpan, at now: MonotonicTime) { last.withLock { $0 = (lag, now) } }

    /// The thread has ended.
    func end() { last.withLock { $0 = nil } }

    /// The longest that a record has waited since the report before the last, or waits now.
    func value(at now: MonotonicTime) -> TimeSpan {
        last.withLock { last in
            guard let (lag, moment) = last else { return .zero }
            return max(lag, now - moment - Self.reportInterval)
        }
    }
}

import NetworkIO
import Primitives
import Recorder
import Synchronization

/// A thread that does jobs, one after the other. Their processes end with it.
final class JobThread: Sendable {
    private let wake: WakeSignal
    /// Made up for then if a wake-up was lost.
    private static let longestWait = TimeInterval.seconds(60)
    /// Jobs may wait for files that another thread finishes, which says so to nobody.
    private static let waitForFiles = TimeInterval.seconds(1)

    init() throws(SystemError) { wake = try WakeSignal() }

    /// There is something to do, or it is to stop.
    func signal() { wake.signal() }

    /// Calls `work`, which does one job and returns whether there was any, until `mustStop`. `isAsked`: jobs wait.
    func run(mustStop: () -> Bool, isAsked: () -> Bool, work: () -> Bool) {
        Scheduling.idleCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("a thread of jobs cannot wait for its signal")
        }
        while !mustStop() {
            if work() { continue }
            let now = MonotonicClock.now()
            let wait = isAsked() ? Self.waitForFiles : Self.longestWait
            if poller.isReady(wake.descriptor, of: poller.wait(until: now + wait, now: now)) {
                wake.clear()
            }
        }
    }
}

import NetworkIO
import Primitives
import Synchronization

/// A queue of recordings for one low-priority background thread, and how that thread is stopped.
final class WorkQueue: Sendable {
    private let wake: WakeSignal
    private let orders: Mailbox<String>
    private let isStopping = Mutex(false)
    /// A wake-up that was lost would be made up for then.
    private static let longestWait = TimeInterval.seconds(60)

    init() throws(SystemError) {
        wake = try WakeSignal()
        orders = Mailbox(wake: wake)
    }

    /// There is something to do for a recording.
    func post(_ recording: String) { _ = orders.post(recording) }

    /// Ends `run`. What is not done stays pending until the next start.
    func stop() {
        isStopping.withLock { $0 = true }
        wake.signal()
    }

    /// Whether the work in hand should be left.
    var mustStop: Bool { isStopping.withLock { $0 } }

    /// What was posted since the last time.
    func takePosted() -> [String] {
        var taken: [String] = []
        orders.drain(into: &taken)
        return taken
    }

    /// Calls `work` on this thread until it is to stop: when something was posted, and at the moment that `work` has given, if any.
    func run(_ work: () -> MonotonicTime?) {
        Scheduling.idleCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("a thread that works on recordings cannot wait for its work")
        }
        var next: MonotonicTime?
        while !mustStop {
            let now = MonotonicClock.now()
            let deadline = max(min(next ?? .distantFuture, now + Self.longestWait), now)
            if poller.isReady(wake.descriptor, of: poller.wait(until: deadline, now: now)) { wake.clear() }
            next = work()
        }
    }
}

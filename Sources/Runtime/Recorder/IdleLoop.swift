public import NetworkIO
public import Primitives
import Synchronization

/// The loop of a low-priority thread: it waits for a signal or a time, works, and can be stopped.
public final class IdleLoop: Sendable {
    /// Signals the loop.
    public let wake: WakeSignal
    private let isStopping = Mutex(false)
    /// A lost wake-up would be noticed then.
    private static let longestWait = TimeSpan.seconds(60)

    public init() throws(SystemError) { wake = try WakeSignal() }

    /// Ends `run`.
    public func stop() {
        isStopping.withLock { $0 = true }
        wake.signal()
    }

    /// Whether the current work should be abandoned.
    public var mustStop: Bool { isStopping.withLock { $0 } }

    /// Calls `work` on this thread until it is stopped: after each signal, and at the time that `work` has returned, if any.
    public func run(_ work: () -> MonotonicTime?) {
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

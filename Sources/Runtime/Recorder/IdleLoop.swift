public import NetworkIO
public import Primitives
import Synchronization

/// What a thread does that works while nobody else needs the processor: it waits for a signal or a moment, and is stopped.
public final class IdleLoop: Sendable {
    /// Signals the loop.
    public let wake: WakeSignal
    private let isStopping = Mutex(false)
    /// A wake-up that was lost would be made up for then.
    private static let longestWait = TimeInterval.seconds(60)

    public init() throws(SystemError) { wake = try WakeSignal() }

    /// Ends `run`.
    public func stop() {
        isStopping.withLock { $0 = true }
        wake.signal()
    }

    /// Whether the work in hand should be left.
    public var mustStop: Bool { isStopping.withLock { $0 } }

    /// Calls `work` on this thread until it is to stop: after each signal, and at the moment that `work` has given, if any.
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

import Primitives
import Synchronization

/// A thread for calls that may block, such as those to the disk: waiting for them delays neither a loop nor another request.
public final class BlockingCalls: Sendable {
    private typealias Call = @Sendable () -> Void

    private let wake: WakeSignal
    private let posted: Mailbox<Call>
    private let thread: Mutex<LoopThread?>
    private let waiting = Mutex(0)
    private let mostWaiting: Int

    /// Starts a thread with a `name` of at most 15 bytes; further calls are refused while `mostWaiting` wait. `stop()` must be called.
    public init(thread name: String, mostWaiting: Int) throws(SystemError) {
        let wake = try WakeSignal()
        let posted = Mailbox<Call>(wake: wake)
        self.wake = wake
        self.posted = posted
        self.mostWaiting = mostWaiting
        thread = Mutex(try LoopThread(name: name, cpu: nil) { Self.work(off: posted, wake) })
    }

    /// Runs `body` on the thread; nil if too many calls wait, or the thread is about to end.
    public func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
        let isAdmitted = waiting.withLock { waiting in
            guard waiting < mostWaiting else { return false }
            waiting += 1
            return true
        }
        guard isAdmitted else { return nil }
        defer { waiting.withLock { $0 -= 1 } }
        return await withCheckedContinuation { continuation in
            let isPosted = posted.post { continuation.resume(returning: body()) }
            if !isPosted { continuation.resume(returning: nil) }
        }
    }

    /// Ends the thread after it has run what was posted. Blocks until then.
    public func stop() {
        posted.close()
        wake.signal()
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }

    private static func work(off posted: Mailbox<Call>, _ wake: WakeSignal) {
        Scheduling.yieldCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("a thread for what may block cannot wait for its work")
        }
        var taken: [Call] = []
        while true {
            let now = MonotonicClock.now()
            if poller.isReady(wake.descriptor, of: poller.wait(until: now + longestWait, now: now)) { wake.clear() }
            // Everything that was posted before it was closed is drained after this.
            let isLast = posted.isClosed
            posted.drain(into: &taken)
            for call in taken { call() }
            taken.removeAll(keepingCapacity: true)
            if isLast { return }
        }
    }

    /// A lost wake-up would be noticed then.
    private static let longestWait = TimeSpan.seconds(60)
}

public import Primitives
import Synchronization

/// Runs an actor's jobs on the thread of its loop, between two turns.
public final class LoopExecutor: SerialExecutor {
    /// An item for the thread to run.
    public enum Job: Sendable {
        /// A job of the actor.
        case actor(UnownedJob)
        /// A call whose caller may stop waiting.
        case call(@Sendable () -> Void)
    }

    /// Wakes the loop, besides its sockets.
    public let wake: WakeSignal
    private let jobs: Mailbox<Job>
    /// The thread that runs the loop; 0 before it starts and after it has ended.
    private let thread = Atomic<UInt>(0)
    /// Jobs after the last turn.
    private let late = LateJobs()

    /// The executor of a loop that has not started.
    public init() throws(SystemError) {
        wake = try WakeSignal()
        jobs = Mailbox(wake: wake)
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The runtime does not own the executor that it calls: as soon as the job can run, another thread may end the last use of its actor, and of this object.
        let own = Self.retain(self)
        defer { Self.release(own) }
        if !jobs.post(.actor(job)) { late.add(job, on: asUnownedSerialExecutor()) }
    }

    /// Not inlined: the optimiser assumes that the caller owns its arguments, and would remove the pair.
    @inline(never) private static func retain(_ executor: LoopExecutor) -> Unmanaged<LoopExecutor> {
        .passRetained(executor)
    }
    @inline(never) private static func release(_ executor: Unmanaged<LoopExecutor>) { executor.release() }

    /// Runs `call` on the thread, in order with the jobs; false after the thread's end, when it runs nothing more.
    public func post(_ call: @escaping @Sendable () -> Void) -> Bool { jobs.post(.call(call)) }

    /// Whether the thread runs nothing more.
    public var hasEnded: Bool { jobs.isClosed }

    public func checkIsolated() {
        precondition(isOnThread, "the state of a loop is touched from another thread")
    }

    public func isIsolatingCurrentContext() -> Bool? { isOnThread ? true : nil }

    private var isOnThread: Bool { thread.load(ordering: .relaxed) == currentThread() }

    /// Makes the calling thread the one that runs jobs.
    public func adoptThread() { thread.store(currentThread(), ordering: .relaxed) }

    /// Runs the posted items; those beyond `limit` wait for the next turn, which follows at once. The caller owns `buffer`, so that no
    /// turn allocates.
    public func runJobs(_ buffer: inout [Job], limit: TimeSpan? = nil) {
        wake.clear()
        jobs.drain(into: &buffer)
        guard !buffer.isEmpty else { return }
        let end = limit.map { MonotonicClock.now() + $0 }
        for index in buffer.indices {
            switch buffer[index] {
            case .actor(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .call(let call): call()
            }
            if let end, index + 1 < buffer.count, MonotonicClock.now() > end {
                return jobs.putBack(&buffer, from: index + 1)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Ends the loop: runs the remaining items; later jobs run on their callers' threads.
    public func retire(_ buffer: inout [Job]) {
        jobs.close()
        runJobs(&buffer)
        thread.store(0, ordering: .relaxed)
        late.finish(on: asUnownedSerialExecutor())
    }
}

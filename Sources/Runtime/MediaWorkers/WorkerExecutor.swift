import NetworkIO
import Primitives
import Synchronization

/// What a worker's thread is given to do between two turns.
enum WorkerJob: Sendable {
    /// A job of the worker's actor.
    case job(UnownedJob)
    /// A call that nobody may have the patience to wait for; see `MediaWorkerPool.ask`.
    case call(@Sendable () -> Void)
}

/// Runs an actor's jobs on the worker's own thread, between two turns of its loop.
final class WorkerExecutor: SerialExecutor {
    let wake: WakeSignal
    private let jobs: Mailbox<WorkerJob>
    /// The thread that runs the loop; 0 before it starts and after it ended.
    private let thread = Atomic<UInt>(0)
    /// What comes behind the last turn.
    private let late = LateJobs()

    init() throws(SystemError) {
        wake = try WakeSignal()
        jobs = Mailbox(wake: wake)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !jobs.post(.job(job)) { late.add(job, on: asUnownedSerialExecutor()) }
    }

    /// Has the thread run `call` in the order of the jobs; false after its end, when it runs nothing more.
    func post(_ call: @escaping @Sendable () -> Void) -> Bool { jobs.post(.call(call)) }

    /// Whether the thread runs nothing more.
    var hasEnded: Bool { jobs.isClosed }

    func checkIsolated() {
        precondition(isOnThread, "a media worker's state is touched from another thread")
    }

    func isIsolatingCurrentContext() -> Bool? { isOnThread ? true : nil }

    private var isOnThread: Bool { thread.load(ordering: .relaxed) == currentThread() }

    /// Makes the calling thread the one that runs jobs, and puts it before the process' other threads: while 500 join a second, two
    /// processors are busy with their signalling and media waited for its turn for most of the time.
    func adoptThread() {
        thread.store(currentThread(), ordering: .relaxed)
        Scheduling.preferCurrentThread()
    }

    /// How long jobs may keep a turn's media waiting. A description that brings an early DTLS flight costs a third of a millisecond of
    /// elliptic curves, and twenty of them may be posted at once when many join.
    static let share = TimeInterval.microseconds(300)

    /// Runs what was posted; what does not fit into `limit` waits for the next turn, which follows at once. `buffer` is the caller's, so that no
    /// turn allocates.
    func runJobs(_ buffer: inout [WorkerJob], limit: TimeInterval = WorkerExecutor.share) {
        jobs.drain(into: &buffer)
        guard !buffer.isEmpty else { return }
        let start = MonotonicClock.now()
        for index in buffer.indices {
            switch buffer[index] {
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .call(let call): call()
            }
            if index + 1 < buffer.count, MonotonicClock.now() - start > limit {
                return jobs.putBack(&buffer, from: index + 1)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Ends the loop's time: runs what is left; later jobs run where they come from.
    func retire(_ buffer: inout [WorkerJob]) {
        jobs.close()
        runJobs(&buffer, limit: .seconds(3_600))
        thread.store(0, ordering: .relaxed)
        late.finish(on: asUnownedSerialExecutor())
    }
}

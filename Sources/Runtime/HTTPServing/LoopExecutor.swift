import NetworkIO
import Synchronization

/// Runs an actor's jobs on the thread of its loop, between two turns.
final class LoopExecutor: SerialExecutor {
    /// What the loop waits for beside its sockets.
    let wake: WakeSignal
    private let jobs: Mailbox<UnownedJob>
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
        if !jobs.post(job) { late.add(job, on: asUnownedSerialExecutor()) }
    }

    func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "the HTTP thread's state is touched from another thread")
    }

    func isIsolatingCurrentContext() -> Bool? { thread.load(ordering: .relaxed) == currentThread() }

    /// Makes the calling thread the one that runs jobs.
    func adoptThread() { thread.store(currentThread(), ordering: .relaxed) }

    /// Runs what was posted.
    func runJobs() {
        wake.clear()
        var posted: [UnownedJob] = []
        jobs.drain(into: &posted)
        for job in posted { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    /// Ends the loop's time: runs what is left; later jobs run where they come from.
    func retire() {
        jobs.close()
        runJobs()
        thread.store(0, ordering: .relaxed)
        late.finish(on: asUnownedSerialExecutor())
    }
}

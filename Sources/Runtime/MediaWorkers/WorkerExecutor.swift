import NetworkIO
import Synchronization

/// Runs an actor's jobs on the worker's own thread, between two turns of its loop.
final class WorkerExecutor: SerialExecutor {
    let wake: WakeSignal
    private let jobs: Mailbox<UnownedJob>
    /// The thread that runs the loop; 0 before it starts and after it ended.
    private let thread = Atomic<UInt>(0)
    /// Jobs that came after the end: whoever brings the first runs them all, so that nobody waits for ever.
    private let late = Mutex<(queue: [UnownedJob], isRunning: Bool)>(([], false))

    init() throws(SystemError) {
        wake = try WakeSignal()
        jobs = Mailbox(wake: wake)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !jobs.post(job) { runLate(job) }
    }

    func checkIsolated() {
        precondition(isOnThread, "a media worker's state is touched from another thread")
    }

    func isIsolatingCurrentContext() -> Bool? { isOnThread ? true : nil }

    private var isOnThread: Bool { thread.load(ordering: .relaxed) == currentThread() }

    /// Makes the calling thread the one that runs jobs.
    func adoptThread() { thread.store(currentThread(), ordering: .relaxed) }

    /// Runs what was posted. `buffer` is the caller's, so that no turn allocates.
    func runJobs(_ buffer: inout [UnownedJob]) {
        jobs.take(into: &buffer)
        for job in buffer { job.runSynchronously(on: asUnownedSerialExecutor()) }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Ends the loop's time: runs what is left; later jobs run where they come from.
    func retire(_ buffer: inout [UnownedJob]) {
        jobs.close()
        runJobs(&buffer)
        thread.store(0, ordering: .relaxed)
    }

    private func runLate(_ job: UnownedJob) {
        let isMine = late.withLock { late -> Bool in
            late.queue.append(job)
            defer { late.isRunning = true }
            return !late.isRunning
        }
        guard isMine else { return }
        while let next = nextLate() { next.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    private func nextLate() -> UnownedJob? {
        late.withLock { late in
            if late.queue.isEmpty {
                late.isRunning = false
                return nil
            }
            return late.queue.removeFirst()
        }
    }
}

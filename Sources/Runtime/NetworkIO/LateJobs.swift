import Synchronization

/// An actor's jobs that arrive after the last turn of its loop, so that no caller waits forever.
///
/// They run one at a time, in order of arrival: on the loop's thread until it has retired, after that on the thread that adds
/// one while none is running.
final class LateJobs: Sendable {
    private struct State {
        var queue: [UnownedJob] = []
        /// True from the beginning: the loop's thread runs jobs until it has called `finish(on:)`.
        var isRunning = true
    }

    private let state = Mutex(State())

    /// Runs `job`, or leaves it to the thread that already runs one.
    func add(_ job: UnownedJob, on executor: UnownedSerialExecutor) {
        let isMine = state.withLock { state -> Bool in
            state.queue.append(job)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isMine { finish(on: executor) }
    }

    /// Runs the jobs that have arrived: the last action of the loop's thread.
    func finish(on executor: UnownedSerialExecutor) {
        while let next = next() { next.runSynchronously(on: executor) }
    }

    private func next() -> UnownedJob? {
        state.withLock { state in
            state.isRunning = !state.queue.isEmpty
            return state.isRunning ? state.queue.removeFirst() : nil
        }
    }
}

import Recorder

/// The waiting and running jobs: first come, first served, and bounded.
struct JobQueue {
    private let maximumRunning: Int
    private let maximumQueued: Int
    private var waiting: [RecordingJob] = []
    /// Places reserved for jobs that are being stored.
    private var reserved = 0
    private var running: [String: RecordingJob] = [:]
    private var cancelled: Set<String> = []

    init(maximumRunning: Int, maximumQueued: Int) {
        self.maximumRunning = maximumRunning
        self.maximumQueued = maximumQueued
    }

    var counts: (queued: Int, running: Int) { (waiting.count, running.count) }

    /// Reserves a place for another job; false: the maximum number waits.
    mutating func reserve() -> Bool {
        guard waiting.count + reserved < maximumQueued else { return false }
        reserved += 1
        return true
    }

    /// Frees a reserved place.
    mutating func release() {
        reserved -= 1
        if reserved == 0 { cancelled = cancelled.filter { running[$0] != nil } }
    }

    /// Adds a job after the others. Those of an earlier run of the server are added regardless of the limit. False: it was cancelled while it was being stored.
    @discardableResult mutating func add(_ job: RecordingJob) -> Bool {
        guard cancelled.remove(job.sid) == nil else { return false }
        waiting.append(job)
        return true
    }

    /// The next job to run, among those that are ready (`isReady`); nil: none, or the maximum number is running.
    mutating func next(_ isReady: (RecordingJob) -> Bool) -> RecordingJob? {
        guard running.count < maximumRunning, let index = waiting.firstIndex(where: isReady) else { return nil }
        let job = waiting.remove(at: index)
        running[job.sid] = job
        return job
    }

    /// Removes a job. True: it was waiting, and is removed; false: the thread that runs it, or is about to add it, is notified.
    mutating func cancel(_ sid: String) -> Bool {
        if let index = waiting.firstIndex(where: { $0.sid == sid }) {
            waiting.remove(at: index)
            return true
        }
        if running[sid] != nil || reserved > 0 { cancelled.insert(sid) }
        return false
    }

    /// Whether a running job must end.
    func isCancelled(_ sid: String) -> Bool { cancelled.contains(sid) }

    /// A job is no longer running.
    mutating func end(_ sid: String) {
        running[sid] = nil
        cancelled.remove(sid)
    }
}

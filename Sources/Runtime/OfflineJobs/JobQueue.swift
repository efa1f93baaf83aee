import Recorder

/// Which jobs wait and which are at work: first come, first served, and bounded.
struct JobQueue {
    private let maximumRunning: Int
    private let maximumQueued: Int
    private var waiting: [RecordingJob] = []
    /// Places that are kept for jobs which are being written down.
    private var reserved = 0
    private var running: [String: RecordingJob] = [:]
    private var cancelled: Set<String> = []

    init(maximumRunning: Int, maximumQueued: Int) {
        self.maximumRunning = maximumRunning
        self.maximumQueued = maximumQueued
    }

    var counts: (queued: Int, running: Int) { (waiting.count, running.count) }

    /// Keeps a place for another job; false: as many wait as may.
    mutating func reserve() -> Bool {
        guard waiting.count + reserved < maximumQueued else { return false }
        reserved += 1
        return true
    }

    /// Gives up a place that was kept.
    mutating func release() {
        reserved -= 1
        if reserved == 0 { cancelled = cancelled.filter { running[$0] != nil } }
    }

    /// Adds a job behind the others. Those of an earlier life of the server come in whatever the limit. False: it was cancelled while it was written down.
    @discardableResult mutating func add(_ job: RecordingJob) -> Bool {
        guard cancelled.remove(job.sid) == nil else { return false }
        waiting.append(job)
        return true
    }

    /// The next job that is to be done, of those that `isReady`; nil: none, or as many run as may.
    mutating func next(_ isReady: (RecordingJob) -> Bool) -> RecordingJob? {
        guard running.count < maximumRunning, let index = waiting.firstIndex(where: isReady) else { return nil }
        let job = waiting.remove(at: index)
        running[job.sid] = job
        return job
    }

    /// Takes a job out. True: it waited, and is no more; false: whoever works on it, or is about to add it, learns of it.
    mutating func cancel(_ sid: String) -> Bool {
        if let index = waiting.firstIndex(where: { $0.sid == sid }) {
            waiting.remove(at: index)
            return true
        }
        if running[sid] != nil || reserved > 0 { cancelled.insert(sid) }
        return false
    }

    /// Whether whoever works on a job is to leave it.
    func isCancelled(_ sid: String) -> Bool { cancelled.contains(sid) }

    /// Nobody works on a job any more.
    mutating func end(_ sid: String) {
        running[sid] = nil
        cancelled.remove(sid)
    }
}

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
    mutating func release() { reserved -= 1 }

    /// Adds a job behind the others. Those of an earlier life of the server come in whatever the limit.
    mutating func add(_ job: RecordingJob) { waiting.append(job) }

    /// The next job that is to be done; nil: none, or as many run as may.
    mutating func next() -> RecordingJob? {
        guard running.count < maximumRunning, !waiting.isEmpty else { return nil }
        let job = waiting.removeFirst()
        running[job.sid] = job
        return job
    }

    /// Takes a job out. True: it waited, and is no more; false: whoever works on it is told, if anybody does.
    mutating func cancel(_ sid: String) -> Bool {
        if let index = waiting.firstIndex(where: { $0.sid == sid }) {
            waiting.remove(at: index)
            return true
        }
        if running[sid] != nil { cancelled.insert(sid) }
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

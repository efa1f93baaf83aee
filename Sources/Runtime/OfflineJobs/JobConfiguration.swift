public import Primitives

/// What jobs may use.
public struct JobConfiguration: Sendable, Hashable {
    /// The program `ffmpeg`: a path, or a name that is looked for where the system keeps programs; empty: there are no jobs.
    public var program = "ffmpeg"
    /// Jobs at once.
    public var maximumRunning = 1
    /// Jobs that wait.
    public var maximumQueued = 100
    /// Bytes of address space of one job's process.
    public var memoryBytes: UInt64 = 4_096 << 20
    /// How long one job may take.
    public var longest = TimeInterval.seconds(43_200)

    /// The usual limits.
    public init() {}

    /// Where the program lies; nil: it is not installed. Looks at the disk.
    func path(isProgram: (String) -> Bool) -> String? {
        guard !program.isEmpty else { return nil }
        guard !program.contains("/") else { return isProgram(program) ? program : nil }
        return ["/usr/local/bin", "/usr/bin", "/bin"].map { "\($0)/\(program)" }.first(where: isProgram)
    }
}

/// What jobs have done; for metrics.
public struct JobStatistics: Sendable, Hashable {
    public var queued = 0
    public var running = 0
    public var finished: UInt64 = 0
    public var failed: UInt64 = 0
    public var cancelled: UInt64 = 0
    /// Processor time of their processes.
    public var processorTime = TimeInterval.zero

    /// Nothing.
    public init() {}
}

/// Why a job has failed. `rawValue` is the stable word.
enum JobFault: String, Error, Sendable, Hashable, CaseIterable {
    /// Somebody has cancelled it.
    case cancelled
    /// The server ends: it begins again with the next start.
    case stopped
    /// Its recording was deleted.
    case deleted
    /// It took longer than a job may.
    case timeLimit = "time_limit"
    /// The disk has less room left than recordings must leave free.
    case diskFull = "disk_full"
    case diskError = "disk_error"
    /// There is nothing to be seen or heard in the recording.
    case empty
    /// A file of the recording cannot be read.
    case unreadable = "unreadable_file"
    /// ffmpeg has refused; the server's log has its words.
    case programFailed = "ffmpeg_failed"
    /// The server ended during each of its tries.
    case interrupted
}

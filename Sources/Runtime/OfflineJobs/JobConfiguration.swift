public import Primitives

/// The limits of jobs.
public struct JobConfiguration: Sendable, Hashable {
    /// The program `ffmpeg`: a path, or a name that is searched for where the system keeps programs; empty: there are no jobs.
    public var program = "ffmpeg"
    /// Jobs that run at a time.
    public var maximumRunning = 1
    /// Jobs that wait.
    public var maximumQueued = 100
    /// Bytes of address space for one job's process.
    public var memoryBytes: UInt64 = 4_096 << 20
    /// How long one job may take.
    public var longest = TimeSpan.seconds(43_200)

    /// The default limits.
    public init() {}

    /// The path of the program; nil: it is not installed. Reads the disk.
    func path(isProgram: (String) -> Bool) -> String? {
        guard !program.isEmpty else { return nil }
        guard !program.contains("/") else { return isProgram(program) ? program : nil }
        return ["/usr/local/bin", "/usr/bin", "/bin"].map { "\($0)/\(program)" }.first(where: isProgram)
    }
}

/// Counters of jobs, for metrics.
public struct JobStatistics: Sendable, Hashable {
    public var queued = 0
    public var running = 0
    public var finished: UInt64 = 0
    public var failed: UInt64 = 0
    public var cancelled: UInt64 = 0
    /// Processor time of their processes.
    public var processorTime = TimeSpan.zero

    /// All zero.
    public init() {}
}

/// Why a job has failed. `rawValue` is the stable word.
enum JobFault: String, Error, Sendable, Hashable, CaseIterable {
    /// Somebody has cancelled it.
    case cancelled
    /// The server ends: the job begins again at the next start.
    case stopped
    /// Its recording was deleted.
    case deleted
    /// It took longer than a job may.
    case timeLimit = "time_limit"
    /// The disk has less space left than recordings must leave free.
    case diskFull = "disk_full"
    case diskError = "disk_error"
    /// The recording has neither audio nor video.
    case empty
    /// A file of the recording cannot be read.
    case unreadable = "unreadable_file"
    /// ffmpeg has failed; the server's log has its message.
    case programFailed = "ffmpeg_failed"
    /// The server ended during each of its tries.
    case interrupted
}

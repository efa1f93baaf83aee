import OfflineJobs
import Primitives

/// `recording.ffmpeg` and `recording.job…`: the program that makes files from finished recordings, and the resources that it may use.
struct JobSettings: Sendable {
    /// Empty: there are no jobs.
    var program = "ffmpeg"
    /// At once.
    var running = 1
    /// That wait.
    var queued = 100
    /// Megabytes of address space of a job's process; 0: no limit.
    var memory = 4_096
    var time = TimeSpan.seconds(43_200)

    /// The configuration of jobs.
    var configuration: JobConfiguration {
        var jobs = JobConfiguration()
        jobs.program = program
        jobs.maximumRunning = running
        jobs.maximumQueued = queued
        jobs.memoryBytes = UInt64(memory) << 20
        jobs.longest = time
        return jobs
    }
}

extension Setting {
    static let jobs: [Setting] = [
        value(
            "recording.ffmpeg",
            "the program that makes compositions and other bit rates of finished recordings, in processes of its own; `none`: no such jobs",
            wants: "a path, or a name that is looked for in /usr/local/bin, /usr/bin and /bin",
            \.recording.jobs.program, parse: { $0.isEmpty ? nil : $0 == "none" ? "" : $0 },
            show: { $0.isEmpty ? "none" : $0 }),
        number("recording.jobs", "maximum jobs on recordings at once", 1...64, \.recording.jobs.running),
        number("recording.job_queue", "maximum jobs on recordings that wait", 1...10_000, \.recording.jobs.queued),
        number(
            "recording.job_memory", "megabytes of address space that a job's process may use; 0: no limit",
            0...1_000_000, \.recording.jobs.memory),
        seconds(
            "recording.job_time", "a job on a recording that takes longer has failed", 60...604_800,
            \.recording.jobs.time),
    ]
}

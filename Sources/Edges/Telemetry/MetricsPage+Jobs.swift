import OfflineJobs
import Primitives

extension MetricsPage {
    /// What jobs on recordings have done.
    mutating func add(jobs: JobStatistics) {
        add(
            "recording_jobs", .gauge, "Jobs on finished recordings, by state.",
            [([("state", "queued")], Double(jobs.queued)), ([("state", "running")], Double(jobs.running))])
        add(
            "recording_jobs_ended_total", .counter, "Jobs on finished recordings that have ended, by result.",
            [
                ([("result", "finished")], Double(jobs.finished)), ([("result", "failed")], Double(jobs.failed)),
                ([("result", "cancelled")], Double(jobs.cancelled)),
            ])
        add(
            "recording_jobs_cpu_seconds_total", .counter, "CPU time of the processes of jobs.",
            [([], jobs.processorTime.seconds)])
    }
}

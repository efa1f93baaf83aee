import EdgeSupport
import Logging
import MediaWorkers
import NetworkIO
import OfflineJobs
import Recorder

extension Server {
    /// Recordings from before a restart are finished before anything else begins.
    static func openRecorder(
        _ configuration: Configuration, _ workers: MediaWorkerPool, _ logger: Logger
    ) throws(CommandError) -> FileRecorder? {
        let settings: RecorderConfiguration?
        do throws(SettingProblem) {
            settings = try configuration.recording.recorder()
        } catch {
            // The file was valid when the configuration was checked.
            throw CommandError(message: "martlet: \(configuration.fault(error.path, error.problem))", exitCode: 1)
        }
        guard let settings else { return nil }
        do throws(SystemError) {
            return try FileRecorder(
                settings, rings: workers.recordRings,
                codec: RecordingCodec(
                    encode: { JSONCoding.encode($0) },
                    decode: { try? JSONCoding.decode(RecordingSummary.self, from: $0) },
                    encodeLine: { JSONCoding.encode($0) },
                    decodeLine: { try? JSONCoding.decode(LogLine.self, from: $0) }),
                logger: logger.named("recorder"))
        } catch {
            throw CommandError(
                message:
                    "martlet: recordings cannot be written: \(error). Set recording.directory to a folder that the server may write.",
                exitCode: 1)
        }
    }

    /// The runner of jobs that make files from finished recordings; nil if there are no recordings.
    static func openJobs(
        _ configuration: Configuration, _ recorder: FileRecorder?, _ logger: Logger
    ) throws(CommandError) -> JobRunner? {
        guard let recorder else { return nil }
        var generator = SystemRandomNumberGenerator()
        do throws(SystemError) {
            return try JobRunner(
                configuration.recording.jobs.configuration, recorder.jobs, seed: generator.next(),
                logger: logger.named("jobs"))
        } catch {
            throw CommandError(message: "martlet: jobs on recordings cannot be done: \(error)", exitCode: 1)
        }
    }

    /// Called when no room is left, and the workers' records are in the rings: announces the files of the recordings, unless the disk hangs. `task` is in
    /// ``Recorder/run(_:)``.
    static func announceRecordings(_ recorder: FileRecorder?, _ task: Task<Void, Never>?) async {
        guard let recorder, let task else { return }
        recorder.finish()
        let timer = Task {
            if (try? await Task.sleep(for: .seconds(5))) != nil { task.cancel() }
        }
        await task.value
        timer.cancel()
    }
}

import EdgeSupport
import Logging
import MediaWorkers
import NetworkIO
import Recorder

extension Server {
    /// Recordings of an earlier life are finished before anything else begins.
    static func openRecorder(
        _ configuration: Configuration, _ workers: MediaWorkerPool, _ logger: Logger
    ) throws(CommandError) -> Recorder? {
        guard var settings = configuration.recorder else { return nil }
        do throws(ConfigurationError) {
            settings.storage = try configuration.recordingStorage()
        } catch {
            // The file was good when the configuration was checked.
            let problems = error.faults.map { "\($0)" }.joined(separator: "; ")
            throw CommandError(message: "martlet: \(problems)", exitCode: 1)
        }
        do throws(SystemError) {
            return try Recorder(
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
}

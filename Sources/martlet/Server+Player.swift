import MediaWorkers
import NetworkIO
import Player
import Primitives
import Recorder
import Rooms

extension Server {
    /// The player of files, if a folder for them is configured, and of recordings, if they are enabled; nil if neither is.
    static func openPlayer(
        _ configuration: Configuration, _ workers: MediaWorkerPool, _ recorder: FileRecorder?
    ) throws(CommandError) -> FilePlayer? {
        guard configuration.playbackDirectory != nil || recorder != nil else { return nil }
        var settings = PlayerConfiguration(directory: configuration.playbackDirectory)
        settings.maximumPlaybacks = configuration.maximumPlaybacks
        var generator = SystemRandomNumberGenerator()
        do throws(SystemError) {
            return try FilePlayer(settings, workers: workers, seed: generator.next()) {
                (sid, name) throws(RoomError) -> [RecordedFile] in
                try Self.files(of: sid, name, recorder)
            }
        } catch {
            throw CommandError(message: "martlet: files cannot be played: \(error)", exitCode: 1)
        }
    }

    /// The files of a recording that are played together: the named one, or one of each kind of its only participant.
    private static func files(
        of sid: String, _ name: String?, _ recorder: FileRecorder?
    ) throws(RoomError) -> [RecordedFile] {
        guard let recorder, let summary = recorder[sid] else {
            throw RoomError(.recordingNotFound, "there is no such recording")
        }
        guard summary.state != .recording else {
            throw RoomError(
                .notPlayable, "the recording is in progress; end it before it is played (recording_in_progress)")
        }
        if let name {
            guard let path = recorder.path(of: name, in: sid) else {
                throw RoomError(.fileNotFound, "the recording has no file of this name")
            }
            return [RecordedFile(path: path, start: .zero)]
        }
        let stored = summary.storedFiles
        if stored.count == 1, let path = recorder.path(of: stored[0].name, in: sid) {
            return [RecordedFile(path: path, start: .zero)]
        }
        let tracks = summary.tracks.filter { !$0.files.isEmpty }
        guard !tracks.isEmpty else { throw RoomError(.fileNotFound, "the recording has no files") }
        guard Set(tracks.map(\.participant)).count == 1, Set(tracks.map(\.kind)).count == tracks.count,
            tracks.allSatisfy({ $0.files.count == 1 })
        else {
            throw RoomError(
                .notPlayable,
                "the recording has several participants or several files of a kind; name one file (several_files)")
        }
        let files = tracks.map { $0.files[0] }
        let paths = files.compactMap { recorder.path(of: $0.name, in: sid) }
        guard paths.count == files.count else {
            throw RoomError(.fileNotFound, "not all files of the recording are here")
        }
        return zip(paths, RecordingSummary.starts(of: files)).map { RecordedFile(path: $0, start: .microseconds($1)) }
    }
}

import Logging
import NetworkIO
import Primitives
import Synchronization

/// Every recording there is, in memory and on the disk. Read by the API, written by the recorder's thread.
final class RecordingBooks: Sendable {
    private struct State {
        var summaries: [String: RecordingSummary] = [:]
        var statistics = RecorderStatistics()
    }

    private let state = Mutex(State())
    private let place: RecordingFolder
    private let configuration: RecorderConfiguration
    private let encode: @Sendable (RecordingSummary) -> [UInt8]
    let encodeLine: @Sendable (LogLine) -> [UInt8]
    private let logger: Logger

    init(_ configuration: RecorderConfiguration, _ codec: RecordingCodec, logger: Logger) throws(SystemError) {
        self.configuration = configuration
        encode = codec.encode
        encodeLine = codec.encodeLine
        self.logger = logger
        place = RecordingFolder(configuration.directory)
        try place.make(configuration.directory)
        let free = place.freeBytes ?? 0
        let found = recover(codec.decode)
        state.withLock {
            $0.summaries = found
            $0.statistics.freeBytes = free
        }
    }

    // MARK: - What there is

    var all: [RecordingSummary] {
        state.withLock { $0.summaries.values.sorted { ($0.startedAt, $0.sid) > ($1.startedAt, $1.sid) } }
    }

    subscript(sid: String) -> RecordingSummary? { state.withLock { $0.summaries[sid] } }

    var statistics: RecorderStatistics { state.withLock(\.statistics) }

    func folder(of summary: RecordingSummary) -> String { place.folder(room: summary.roomSid, recording: summary.sid) }

    func makeFolder(of summary: RecordingSummary) throws(SystemError) { try place.make(folder(of: summary)) }

    /// A recording begins; its folder follows.
    func add(_ summary: RecordingSummary) { state.withLock { $0.summaries[summary.sid] = summary } }

    /// How a recording in progress stands, in memory alone.
    func show(_ summary: RecordingSummary) { state.withLock { $0.summaries[summary.sid] = summary } }

    func save(_ summary: RecordingSummary) {
        state.withLock { $0.summaries[summary.sid] = summary }
        do throws(SystemError) {
            try place.replace("\(folder(of: summary))/recording.json", with: encode(summary))
        } catch {
            logger.error(
                "the summary of a recording cannot be written",
                ["recording": .text(summary.sid), "error": .text(error.description)])
        }
    }

    /// Deletes a recording that has ended; false when there is none.
    func delete(_ sid: String) -> Bool {
        let removed = state.withLock { state -> RecordingSummary? in
            guard let summary = state.summaries[sid], summary.state != .recording else { return nil }
            state.summaries[sid] = nil
            return summary
        }
        guard let removed else { return false }
        place.delete(room: removed.roomSid, recording: sid)
        return true
    }

    /// Deletes what has been kept for long enough.
    func deleteExpired(now: Int64) {
        let kept = configuration.keptFor.nanoseconds / 1_000_000
        guard kept > 0 else { return }
        for summary in all where summary.endedAt.map({ $0 + kept <= now }) ?? false {
            if delete(summary.sid) { logger.info("a recording has expired", ["recording": .text(summary.sid)]) }
        }
    }

    // MARK: - After a crash

    /// Finishes what an earlier life of the server left unfinished.
    private func recover(_ decode: ([UInt8]) -> RecordingSummary?) -> [String: RecordingSummary] {
        var found: [String: RecordingSummary] = [:]
        for (room, recording) in place.recordings() {
            let folder = place.folder(room: room, recording: recording)
            guard let bytes = place.contents("\(folder)/recording.json"), var summary = decode(bytes),
                summary.sid == recording, summary.roomSid == room
            else {
                logger.warning("a folder holds no recording that can be read", ["folder": .text(folder)])
                continue
            }
            if summary.endedAt == nil { finish(&summary, in: folder) }
            found[recording] = summary
        }
        return found
    }

    private func finish(_ summary: inout RecordingSummary, in folder: String) {
        var files = 0
        for track in summary.tracks.indices {
            for index in summary.tracks[track].files.indices {
                let path = "\(folder)/\(summary.tracks[track].files[index].name)"
                guard let file = try? OutputFile(path, isNew: false) else { continue }
                if let content = try? file.finish() {
                    summary.tracks[track].files[index].samples = content.samples
                    summary.tracks[track].files[index].durationMilliseconds = Int64(
                        content.duration * 1_000 / UInt64(content.timescale))
                }
                summary.tracks[track].files[index].bytes = file.length
                files += 1
            }
            summary.tracks[track].ended = true
        }
        summary.endedAt = MonotonicClock.wallMilliseconds()
        summary.ended = "crash"
        summary.state = files > 0 ? .ready : .empty
        try? place.replace("\(folder)/recording.json", with: encode(summary))
        logger.info(
            "a recording was finished that an earlier process left open",
            ["recording": .text(summary.sid), "files": .number(files)])
    }

    // MARK: - Limits and figures

    /// Whether the disk has more than the reserve. Looks at the disk: for the recorder's thread.
    func hasRoom() -> Bool {
        guard let free = place.freeBytes else { return true }
        state.withLock { $0.statistics.freeBytes = free }
        return free > configuration.reserveBytes
    }

    /// Whether further tracks may be recorded, by what was last seen.
    var admits: (tracks: Bool, disk: Bool) {
        state.withLock {
            (
                $0.statistics.tracks < configuration.maximumTracks,
                $0.statistics.freeBytes > configuration.reserveBytes
            )
        }
    }

    func sawQueue(_ bytes: Int) { state.withLock { $0.statistics.queuedBytes = bytes } }

    func sawLag(_ lag: TimeInterval, tracks: Int, recordings: Int) {
        state.withLock {
            $0.statistics.lag = lag
            $0.statistics.tracks = tracks
            $0.statistics.recordings = recordings
        }
    }

    func wrote(bytes: UInt64) { state.withLock { $0.statistics.bytesWritten += bytes } }
    func countFinished(_ files: Int) { state.withLock { $0.statistics.filesFinished += UInt64(files) } }
    func countGap() { state.withLock { $0.statistics.gaps += 1 } }
    func countFailure() { state.withLock { $0.statistics.failures += 1 } }
}

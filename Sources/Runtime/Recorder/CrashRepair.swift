import Logging
import NetworkIO
import Primitives

/// Reads the recordings at the start of the server, and finishes those that an earlier process left unfinished.
struct CrashRepair {
    private let place: RecordingFolder
    private let codec: RecordingCodec
    private let movesIndexes: Bool
    private let logger: Logger
    /// In milliseconds. A recording's media reach the disk within seconds: a file that was written much later or earlier was written under a clock that was
    /// set.
    private static let clockTolerance: Int64 = 60_000
    /// What was finished.
    private(set) var finished: [RecordingSummary] = []

    init(_ place: RecordingFolder, _ codec: RecordingCodec, movesIndexes: Bool, logger: Logger) {
        self.place = place
        self.codec = codec
        self.movesIndexes = movesIndexes
        self.logger = logger
    }

    /// All recordings by their sids.
    mutating func run() -> [String: RecordingSummary] {
        var found: [String: RecordingSummary] = [:]
        for (room, recording) in place.recordings() {
            let folder = place.folder(room: room, recording: recording)
            func read(_ name: String) -> RecordingSummary? {
                guard let bytes = place.contents("\(folder)/\(name)"), let summary = codec.decode(bytes),
                    summary.sid == recording, summary.roomSid == room
                else { return nil }
                return summary
            }
            guard var summary = read(RecordingSummary.sidecar) ?? read(RecordingSummary.copy) else {
                logger.warning("a folder holds no recording that can be read", ["folder": .text(folder)])
                continue
            }
            // A table was being moved: the file is unchanged.
            for name in place.names(in: folder) where name.hasSuffix(FrontIndexPass.suffix) {
                place.remove("\(folder)/\(name)")
            }
            if summary.endedAt == nil {
                finish(&summary, in: folder)
                finished.append(summary)
            } else {
                // It may have been written after the end.
                place.remove("\(folder)/\(RecordingSummary.copy)")
                // The disk had no room for the tables of its files when it ended.
                if summary.hasUnfinishedFiles, summary.finishFiles(in: folder).finished > 0 {
                    save(&summary, in: folder)
                }
            }
            // Files that were joined when the process ended, and exist twice.
            for file in summary.tracks.flatMap(\.files) where file.joined != nil && RecordingFolder.isSafe(file.name) {
                place.remove("\(folder)/\(file.name)")
            }
            // Files that jobs were writing: the jobs in progress begin again.
            for job in summary.jobs ?? [] { place.removeLeftovers(of: job, in: folder) }
            found[recording] = summary
        }
        return found
    }

    private func finish(_ summary: inout RecordingSummary, in folder: String) {
        let written = place.names(in: folder).compactMap { place.written("\(folder)/\($0)") }.max()
        let files = summary.finishFiles(in: folder).found
        for track in summary.tracks.indices { summary.tracks[track].ended = true }
        // When the last of its files ends, not when the server was started again, which may be days later.
        let end = summary.tracks.flatMap(\.files).map { $0.startMilliseconds + ($0.durationMilliseconds ?? 0) }.max()
        summary.endedAt = end.map { summary.startedAt + $0 } ?? MonotonicClock.wallMilliseconds()
        // By the clock at its beginning, which may have been set since; the last file was written under the clock of that time.
        if let end, let written, abs(summary.startedAt + end - written) > Self.clockTolerance {
            summary.keptSince = written
        }
        summary.ended = "crash"
        summary.state = files > 0 || summary.joined?.isEmpty == false ? .ready : .empty
        save(&summary, in: folder)
        logger.info(
            "a recording was finished that an earlier process left open",
            ["recording": .text(summary.sid), "files": .number(files)])
    }

    /// Requests the join of its files, or the move of their tables, and writes this to the summary.
    private func save(_ summary: inout RecordingSummary, in folder: String) {
        summary.markForWork(movesIndexes: movesIndexes)
        do throws(SystemError) {
            try place.replace("\(folder)/\(RecordingSummary.sidecar)", with: codec.encode(summary))
            place.remove("\(folder)/\(RecordingSummary.copy)")
        } catch {
            // The next start finds the same state, and does the same again.
            logger.error(
                "the summary of a repaired recording cannot be written; check its disk and its folder's permissions",
                ["folder": .text(folder), "error": .text(error.description)])
        }
    }
}

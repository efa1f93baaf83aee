import Logging
import NetworkIO
import Synchronization

// What lies in a recording's folder beside its files and its summary.

extension RecordingBooks {
    /// Brings copies of the summaries of recordings in progress to the disk, as far as they have changed. A summary that is written without waiting for the disk may be empty
    /// after a power loss; then the copy counts. Blocks.
    func secure() {
        // Where the disk refuses, the next change is tried again.
        for sid in takeUnsecured() where self[sid]?.state == .recording { _ = secure(sid) }
    }

    /// Brings the summary of a recording to the disk, as its copy where it is in progress. False: the disk refuses. Blocks.
    func secure(_ sid: String) -> Bool {
        guard let summary = self[sid] else { return true }
        // Whoever has ended it may not have written that down yet.
        guard summary.state == .recording else { return write(sid) }
        let path = "\(folder(of: summary))/\(RecordingSummary.copy)"
        let isWritten = securing.withLock { _ in
            // As it is by now: another thread may have brought there what came since.
            (try? place.replace(path, with: encode(self[sid] ?? summary))) != nil
        }
        guard stays(summary) else { return true }
        // It may have ended meanwhile: what is written then removes the copy.
        return isWritten && (self[sid]?.state == .recording || write(sid))
    }

    /// Where what grows lies: of each track that is recorded its open file and its log.
    var growing: [String] {
        all.filter { $0.state == .recording }.flatMap { summary -> [String] in
            let names: [String] = summary.tracks.filter { !$0.ended }.flatMap { track in
                track.files.suffix(1).filter { !$0.isFinished }.map(\.name) + ["\(track.sid).jsonl"]
            }
            return names.map { "\(folder(of: summary))/\($0)" }
        }
    }

    /// Brings what a file has so far to the disk. Blocks.
    func synchronize(_ path: String) {
        // It may be finished and gone. What the disk refuses, whoever writes it finds out.
        try? OutputFile(reading: path).synchronize()
    }

    func removeCopy(of summary: RecordingSummary) { place.remove("\(folder(of: summary))/\(RecordingSummary.copy)") }

    /// Lines of a track's log are missing.
    func logRefused(_ track: String, of recording: RecordingSummary) {
        logger.warning(
            "the disk refuses lines of a recorded track's log: joined files may be aligned by arrival instead of by sender reports; check the disk",
            ["recording": .text(recording.sid), "track": .text(track)])
    }

    /// Keeps how far an upload has come, or (nil) forgets it.
    func keep(_ progress: String?, at path: String) {
        guard let progress else { return place.remove(path) }
        // What cannot be kept is uploaded anew after a restart.
        try? place.replace(path, with: Array(progress.utf8))
    }

    /// Removes the files of a job, but for the one that it has made.
    func clear(_ job: RecordingJob, of recording: RecordingSummary) {
        place.removeLeftovers(of: job, in: folder(of: recording))
        _ = stays(recording)
    }
}

import Logging
import NetworkIO
import Synchronization

// The contents of a recording's folder besides its files and its summary.

extension RecordingBooks {
    /// Syncs copies of the summaries of recordings in progress to the disk, if they have changed. A summary that is written without waiting for the disk may be
    /// empty after a power loss; then the copy is used. Blocks.
    func secure() {
        // If the disk refuses, the next change is tried again.
        for sid in consumeUnsecured() where self[sid]?.state == .recording { _ = secure(sid) }
    }

    /// Syncs the summary of a recording to the disk, as its copy if it is in progress. False: the disk refuses. Blocks.
    func secure(_ sid: String) -> Bool {
        guard let summary = self[sid] else { return true }
        // The thread that ended it may not have written that yet.
        guard summary.state == .recording else { return write(sid) }
        let path = "\(folder(of: summary))/\(RecordingSummary.copy)"
        let isWritten = securing.withLock { _ in
            // The current state: another thread may have written later changes.
            (try? place.replace(path, with: encode(self[sid] ?? summary))) != nil
        }
        guard stays(summary) else { return true }
        // It may have ended meanwhile: the write of its end then removes the copy.
        return isWritten && (self[sid]?.state == .recording || write(sid))
    }

    /// The growing files: the open file and the log of each recorded track.
    var growing: [String] {
        all.filter { $0.state == .recording }.flatMap { summary -> [String] in
            let names: [String] = summary.tracks.filter { !$0.ended }.flatMap { track in
                track.files.suffix(1).filter { !$0.isFinished }.map(\.name) + ["\(track.sid).jsonl"]
            }
            return names.map { "\(folder(of: summary))/\($0)" }
        }
    }

    /// Syncs the present contents of a file to the disk. Blocks.
    func synchronize(_ path: String) {
        // It may be finished and moved. If the disk refuses, the writer of the file notices.
        try? OutputFile(reading: path).synchronize()
    }

    func removeCopy(of summary: RecordingSummary) { place.remove("\(folder(of: summary))/\(RecordingSummary.copy)") }

    /// Lines of a track's log are missing.
    func logRefused(_ track: String, of recording: RecordingSummary) {
        logger.warning(
            "the disk refuses lines of a recorded track's log: joined files may be aligned by arrival instead of by sender reports; check the disk",
            ["recording": .text(recording.sid), "track": .text(track)])
    }

    /// Stores the progress of an upload, or (nil) removes it.
    func keep(_ progress: String?, at path: String) {
        guard let progress else { return place.remove(path) }
        // If it cannot be stored, the file is uploaded anew after a restart.
        try? place.replace(path, with: Array(progress.utf8))
    }

    /// Removes the files of a job, except its result.
    func clear(_ job: RecordingJob, of recording: RecordingSummary) {
        place.removeLeftovers(of: job, in: folder(of: recording))
        _ = stays(recording)
    }
}

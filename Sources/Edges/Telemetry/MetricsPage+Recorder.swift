import Primitives
import Recorder
import Rooms

extension MetricsPage {
    /// What the recorder has done.
    mutating func add(recorder: RecorderStatistics) {
        add("recordings", .gauge, "Recordings in progress.", recorder.recordings)
        add("recorded_tracks", .gauge, "Tracks that are being recorded.", recorder.tracks)
        add(
            "recording_bytes_written_total", .counter,
            "Bytes written to the files of recordings.",
            recorder.bytesWritten)
        add(
            "recording_files_finished_total", .counter, "Files of recordings that were finished.",
            recorder.filesFinished)
        add(
            "recording_files_indexed_total", .counter,
            "Finished files by where their index is: at the front, or at the end because the disk lacked room.",
            [
                ([("index", "front")], Double(recorder.filesIndexed)),
                ([("index", "end")], Double(recorder.filesNotIndexed)),
            ])
        add(
            "recording_files_joined_total", .counter,
            "Joins of the files of several tracks into one, by result.",
            [
                ([("result", "joined")], Double(recorder.filesJoined)),
                ([("result", "failed")], Double(recorder.filesNotJoined)),
            ])
        add(
            "recording_files_uploaded_total", .counter, "Files that the storage has proved to have.",
            recorder.filesUploaded)
        add("recording_bytes_uploaded_total", .counter, "Bytes of these files.", recorder.bytesUploaded)
        add(
            "recording_upload_failures_total", .counter, "Failed attempts to upload a file.", recorder.uploadFailures)
        add("recording_uploads_pending", .gauge, "Files that wait to be uploaded.", recorder.uploadsPending)
        add(
            "recordings_deleted_total", .counter, "Finished recordings that were deleted, by reason.",
            [
                ([("reason", "age")], Double(recorder.deletedByAge)),
                ([("reason", "space")], Double(recorder.deletedForSpace)),
            ])
        add("recording_stored_bytes", .gauge, "Bytes of the files of all recordings.", recorder.storedBytes)
        add("recording_gaps_total", .counter, "Parts of recorded tracks that are missing.", recorder.gaps)
        add(
            "recording_failures_total", .counter,
            "Tracks whose recording failed, because of the disk or of their codec.",
            recorder.failures)
        add(
            "recording_tracks_refused_total", .counter,
            "Tracks that a recording should contain and that were not recorded, by reason.",
            RecordingRefusal.allCases.filter { $0 != .disabled }.map {
                ([("reason", $0.rawValue)], Double(recorder.tracksRefused[$0] ?? 0))
            })
        add(
            "recording_queued_bytes", .gauge, "Bytes of media from all workers that wait for the recorder.",
            recorder.queuedBytes)
        add(
            "recording_lag_seconds", .gauge,
            "Longest time that a packet waited for the recorder in the last second, or has waited while the disk hangs.",
            [([], recorder.lag.seconds)])
        add(
            "recording_free_bytes", .gauge, "Free bytes on the disk for recordings.", recorder.freeBytes)
    }
}

extension RecordingSummary {
    /// Whether there are files that a crash or a full disk left open.
    var hasUnfinishedFiles: Bool {
        tracks.contains { $0.files.contains { !$0.isFinished && $0.joined == nil } }
    }

    /// Finishes what was left open of its files, which are in `folder`. Returns how many of them there are, and how many were finished now.
    mutating func finishFiles(in folder: String) -> (found: Int, finished: Int) {
        var (found, finished) = (0, 0)
        for track in tracks.indices {
            for index in tracks[track].files.indices {
                let name = tracks[track].files[index].name
                guard RecordingFolder.isSafe(name), let file = try? OutputFile("\(folder)/\(name)", isNew: false)
                else { continue }
                found += 1
                // Of a file that was finished the summary on the disk may know, or not yet.
                if !tracks[track].files[index].isFinished, let content = try? file.finish() {
                    finished += 1
                    tracks[track].files[index].note(content)
                }
                tracks[track].files[index].bytes = file.length
            }
        }
        return (found, finished)
    }
}

import Glibc
import NetworkIO

extension RecordingSummary {
    /// Whether there are files that a crash or a full disk left open.
    var hasUnfinishedFiles: Bool {
        tracks.contains { $0.files.contains { !$0.isFinished && $0.joined == nil } }
    }

    /// The number of files that have contents, or may have, and that the disk did not let the recorder finish.
    var refusedFiles: Int { tracks.reduce(0) { $0 + $1.files.count { $0.isUnfinished == true } } }

    /// Finishes its open files, which are in `folder`. Returns how many of them there are, and how many were finished now.
    mutating func finishFiles(in folder: String) -> (found: Int, finished: Int) {
        var (found, finished) = (0, 0)
        for track in tracks.indices {
            for index in tracks[track].files.indices {
                guard let isNew = tracks[track].files[index].finish(in: folder) else { continue }
                found += 1
                if isNew { finished += 1 }
            }
        }
        return (found, finished)
    }

    /// Records which files were finished since.
    mutating func apply(finishedFilesOf other: Self) {
        for (track, otherTrack) in zip(tracks.indices, other.tracks) {
            for (file, otherFile) in zip(tracks[track].files.indices, otherTrack.files)
            where tracks[track].files[file].isUnfinished == true && otherFile.isUnfinished != true {
                tracks[track].files[file] = otherFile
            }
        }
    }

    /// Files whose table stays at the end because the disk had no room for the move, except those that a storage has, or is to get, unchanged.
    var refusedIndexes: [File] {
        let uploaded = Set((uploads ?? []).map(\.name))
        return tracks.flatMap(\.files).filter {
            $0.index == .end && $0.indexFault == JoinFault.diskFull.rawValue && !uploaded.contains($0.name)
        }
    }

    /// The tables of those `refusedIndexes` that have these names are to be moved after all.
    mutating func retryIndexes(of names: Set<String>) {
        let refused = Set(refusedIndexes.map(\.name)).intersection(names)
        for track in tracks.indices {
            for file in tracks[track].files.indices where refused.contains(tracks[track].files[file].name) {
                tracks[track].files[file].index = .pending
                tracks[track].files[file].indexFault = nil
            }
        }
    }

    /// Parts that are not joined because the disk had no room, each with the bytes of its files, except those that a storage has, or is to get, unchanged. None
    /// while a job reads the files, which would be removed.
    var refusedJoins: [(name: String, bytes: Int64)] {
        guard !(jobs ?? []).contains(where: \.state.isOpen) else { return [] }
        let uploaded = Set((uploads ?? []).map(\.name))
        return (joined ?? []).compactMap { part in
            guard part.state == .failed, part.fault == JoinFault.diskFull.rawValue else { return nil }
            let own = files(of: Group(participant: part.participant), part: part.part).map(\.file)
            guard !own.contains(where: { uploaded.contains($0.name) }) else { return nil }
            return (part.name, own.reduce(0) { $0 + ($1.bytes ?? 0) })
        }
    }

    /// Those `refusedJoins` that have these names are to be joined after all.
    mutating func retryJoins(of names: Set<String>) {
        let refused = Set(refusedJoins.map(\.name)).intersection(names)
        for index in (joined ?? []).indices where refused.contains(joined?[index].name ?? "") {
            joined?[index].state = .pending
            joined?[index].fault = nil
        }
    }

    /// Its files are finished: its tracks' files are to be joined, or the tables moved.
    mutating func markForWork(movesIndexes: Bool) {
        if joinsTracks {
            _ = addJoins { _, _ in true }
        } else if movesIndexes {
            markForIndex()
        }
    }
}

extension RecordingSummary.File {
    /// Finishes an open file. Returns whether it was finished now; nil: there is no such file.
    fileprivate mutating func finish(in folder: String) -> Bool? {
        guard RecordingFolder.isSafe(name) else { return nil }
        do throws(SystemError) {
            let file = try OutputFile("\(folder)/\(name)", isNew: false)
            bytes = file.length
            // The summary on the disk may or may not know yet of a file that was finished.
            guard !isFinished else { return false }
            let content = try file.finish()
            isUnfinished = nil
            bytes = file.length
            guard let content else { return false }
            note(content)
            return true
        } catch {
            guard error.code == ENOENT else {
                if !isFinished { isUnfinished = true }
                return false
            }
            // A missing file blocks nothing. If its folder is missing, too, their disk may come back.
            if access(folder, F_OK) == 0 { isUnfinished = nil }
            return nil
        }
    }
}

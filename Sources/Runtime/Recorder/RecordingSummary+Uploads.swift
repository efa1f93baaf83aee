// Files that are uploaded to a storage: each once nothing changes it any more.

extension RecordingSummary {
    /// The file that is uploaded last: after it the storage has everything. Files that jobs make later follow it, and then it is uploaded again.
    static let sidecar = "recording.json"
    /// The summary of a recording in progress as it is on the disk for certain.
    static let copy = "recording.copy.json"

    /// The names of files that no longer change, in the order in which they are uploaded.
    var settledFiles: [String] {
        var names: [String] = []
        for track in tracks {
            names += track.files.filter { isSettled($0, of: track) }.map(\.name)
        }
        names += (joined ?? []).filter { $0.state == .ready }.map(\.name)
        guard state != .recording, !awaitsWork else { return names }
        let made = (jobs ?? []).compactMap(\.file?.name)
        return names + Set(tracks.map { "\($0.sid).jsonl" }).sorted() + made + [Self.sidecar]
    }

    private func isSettled(_ file: File, of track: Track) -> Bool {
        guard file.isFinished, file.joined == nil, file.index != .pending else { return false }
        guard let group = group(of: track) else { return true }
        // Its part cannot be joined, or was joined without it: because of a full disk, it was finished only afterwards.
        return (joined ?? []).contains {
            $0.participant == group.participant && $0.part == file.part && $0.state != .pending
        }
    }

    /// Registers the existing files `names` for upload; `key` is the name of each in the storage. Returns whether any of them was not registered yet.
    mutating func addUploads(_ names: [String], key: (String) -> String) -> Bool {
        let known = Set((uploads ?? []).map(\.name))
        let new = settledFiles.filter { !known.contains($0) && names.contains($0) }
        guard !new.isEmpty else { return false }
        var all = (uploads ?? []) + new.map { Upload(name: $0, key: key($0)) }
        // The sidecar in the storage does not list files that were made since.
        if known.contains(Self.sidecar), let index = all.firstIndex(where: { $0.name == Self.sidecar }) {
            all.append(Upload(name: Self.sidecar, key: all.remove(at: index).key))
        }
        uploads = all
        return true
    }

    /// Whether a storage has proved that it has everything. A file that the disk did not let the recorder finish follows once it is finished.
    var isUploaded: Bool {
        refusedFiles == 0 && (uploads ?? []).contains { $0.name == Self.sidecar && $0.state == .done }
    }
}

import Primitives
import Rooms

// Joined tracks: each file belongs to a part of its group, and a part becomes one file.

extension RecordingSummary {
    /// Tracks that are joined into one file.
    struct Group: Hashable {
        /// The sid of their participant; nil: all tracks of the recording.
        var participant: String?
    }

    /// Whether files of several tracks become one.
    var joinsTracks: Bool { (files ?? .tracks) != .tracks }

    /// The group with which the files of `track` are joined; nil: none.
    func group(of track: Track) -> Group? {
        switch files ?? .tracks {
        case .tracks: nil
        case .participant: Group(participant: track.participant)
        case .room: Group(participant: nil)
        }
    }

    /// Adds the parts whose files are all finished, if `isComplete` says that no further file comes. Returns whether there are any.
    mutating func addJoins(_ isComplete: (Group, Int) -> Bool) -> Bool {
        var found: [JoinedFile] = []
        for track in tracks {
            guard let group = group(of: track) else { continue }
            for part in Set(track.files.compactMap(\.part)).sorted() {
                let isKnown = { (file: JoinedFile) in file.participant == group.participant && file.part == part }
                let all = files(of: group, part: part)
                guard !(joined ?? []).contains(where: isKnown), !found.contains(where: isKnown),
                    isComplete(group, part), all.allSatisfy({ $0.track.ended || $0.file.isFinished }),
                    all.contains(where: \.file.isFinished)
                else { continue }
                let beginning = all.map(\.file.startMilliseconds).min() ?? 0
                let fields = FileNameFields(
                    self, participant: group.participant == nil ? "all" : track.identity,
                    track: group.participant ?? roomSid, source: "all")
                let wanted = fields.name(segment: part, at: startedAt + beginning)
                found.append(
                    JoinedFile(
                        name: freeName(wanted, beside: found.map(\.name)), participant: group.participant,
                        identity: group.participant == nil ? nil : track.identity, part: part))
            }
        }
        guard !found.isEmpty else { return false }
        joined = (joined ?? []) + found
        return true
    }

    /// The files of a part, each with its track.
    func files(of group: Group, part: Int) -> [(track: Track, file: File)] {
        tracks.filter { self.group(of: $0) == group }.flatMap { track in
            track.files.filter { $0.part == part }.map { (track, $0) }
        }
    }

    private func freeName(_ wanted: String, beside others: [String]) -> String {
        let taken = Set(tracks.flatMap(\.files).map(\.name) + (joined ?? []).map(\.name) + others)
        var name = wanted + ".mp4"
        var number = 2
        while taken.contains(name) {
            name = "\(wanted)-\(number).mp4"
            number += 1
        }
        return name
    }

    /// A part has become one file, or (`fault`) cannot.
    mutating func join(_ name: String, _ result: Result<JoinedContent, JoinFault>) {
        guard let index = (joined ?? []).firstIndex(where: { $0.name == name }) else { return }
        switch result {
        case .failure(let fault):
            joined?[index].state = .failed
            joined?[index].fault = fault.rawValue
        case .success(let content):
            joined?[index].state = .ready
            joined?[index].startMilliseconds = content.startMilliseconds
            joined?[index].durationMilliseconds = content.durationMilliseconds
            joined?[index].bytes = content.bytes
            joined?[index].content = content.tracks
            for (track, file) in positions where content.names.contains(tracks[track].files[file].name) {
                tracks[track].files[file].joined = name
            }
        }
    }

    /// The index of each file.
    private var positions: [(track: Int, file: Int)] {
        tracks.indices.flatMap { track in tracks[track].files.indices.map { (track, $0) } }
    }

    /// Some of its files are to be joined.
    public var awaitsJoining: Bool { (joined ?? []).contains { $0.state == .pending } }

    /// Whether work on its finished files is pending, which will replace them.
    public var awaitsWork: Bool {
        awaitsJoining || tracks.contains { $0.files.contains { $0.index == .pending } }
    }

    /// The files in its folder that can be watched, by name: files of tracks, and those into which they were joined.
    public var storedFiles: [StoredFile] {
        let own = tracks.flatMap(\.files).filter { $0.joined == nil }.map {
            StoredFile(
                name: $0.name, startMilliseconds: $0.startMilliseconds, durationMilliseconds: $0.durationMilliseconds,
                bytes: $0.bytes ?? 0)
        }
        let joint = (joined ?? []).filter { $0.state == .ready }.map {
            StoredFile(
                name: $0.name, startMilliseconds: $0.startMilliseconds ?? 0,
                durationMilliseconds: $0.durationMilliseconds, bytes: $0.bytes ?? 0)
        }
        return (joint + own).filter { !isRemoved($0.name) }
    }

    /// The files that can be read: its own files, and those that jobs have made from them.
    public var readableFiles: [StoredFile] {
        let made = (jobs ?? []).compactMap { job in
            job.file.map {
                StoredFile(
                    name: $0.name, startMilliseconds: 0, durationMilliseconds: $0.durationMilliseconds, bytes: $0.bytes)
            }
        }
        return storedFiles + made.filter { !isRemoved($0.name) }
    }

    /// Whether only the storage has a file.
    private func isRemoved(_ name: String) -> Bool {
        (uploads ?? []).contains { $0.name == name && $0.isRemoved == true }
    }

    /// A file of a recording.
    public struct StoredFile: Sendable, Hashable {
        /// Its name in the recording's folder.
        public let name: String
        /// When it begins, after the start of the recording.
        public let startMilliseconds: Int64
        /// Once it is finished.
        public let durationMilliseconds: Int64?
        public let bytes: Int64
    }

    /// Takes over the work on finished files since the recording thread last looked.
    mutating func keepFinished(of known: Self) {
        for (track, knownTrack) in zip(tracks.indices, known.tracks) {
            for (file, knownFile) in zip(tracks[track].files.indices, knownTrack.files) {
                tracks[track].files[file].joined = knownFile.joined
                guard let index = knownFile.index, index != .pending else { continue }
                tracks[track].files[file].index = index
                tracks[track].files[file].indexFault = knownFile.indexFault
            }
        }
        uploads = known.uploads
        jobs = known.jobs
        for (index, knownFile) in zip((joined ?? []).indices, known.joined ?? []) where knownFile.state != .pending {
            joined?[index] = knownFile
        }
    }
}

/// Why a part stays in separate files. `rawValue` is the stable word.
enum JoinFault: String, Error {
    case diskFull = "disk_full"
    case diskError = "disk_error"
    case tooLarge = "too_large"
    case unreadable = "unreadable_file"
}

/// The contents of a joined file.
struct JoinedContent {
    var startMilliseconds: Int64
    var durationMilliseconds: Int64
    var bytes: Int64
    /// The files that it was made from.
    var names: Set<String>
    /// The recorded track for each of its tracks.
    var tracks: [String]
}

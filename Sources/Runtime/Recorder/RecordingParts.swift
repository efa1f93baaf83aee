import Movies
import Primitives
import Recording
import Rooms

/// The part of its group into which each track records: joined tracks begin new files together.
///
/// A group's next part begins when its leading video continues in another file, because that needs a keyframe; audio follows at once, other videos with their
/// next keyframe. Without a video it begins at once.
struct RecordingParts {
    /// Tracks of a recording that are joined.
    struct Key: Hashable {
        var recording: String
        var group: RecordingSummary.Group
    }

    private struct State {
        var part = 0
        /// Frames and packets of audio in it.
        var frames = 0
        var began: MonotonicTime
        /// The leading video was asked to continue in another file.
        var cut: MonotonicTime?
    }

    /// A video that cannot begin another file for this long no longer delays the others.
    private static let patience = TimeSpan.seconds(5)

    /// A joined file may have as many samples as the server reads of a movie, including silence and the samples before the next keyframe: three twentieths are
    /// left for those, which is more than the longest silence of a track.
    private static let mostFrames = MovieFile.maximumSamples / 20 * 17

    private var states: [Key: State] = [:]

    /// The part into which a track of the group records now.
    mutating func part(of key: Key, at now: MonotonicTime) -> Int {
        if let state = states[key] { return state.part }
        states[key] = State(began: now)
        return 0
    }

    /// Parts before this one get no more files.
    func current(_ key: Key) -> Int { states[key]?.part ?? 0 }

    mutating func forget(_ recording: String) { states = states.filter { $0.key.recording != recording } }

    /// Checks the groups: those whose part has reached its duration or size continue in another. `bytes`: of a part's files, including those of tracks that
    /// have ended.
    mutating func advance(
        _ tracks: [Key: [RecordedTrack]], to now: MonotonicTime, bytes: (_ key: Key, _ part: Int) -> Int64
    ) {
        for (key, members) in tracks {
            states[key]?.frames += members.reduce(0) { $0 + $1.consumeFrames() }
            guard let state = states[key], let limit = members.first?.groupLimit else { continue }
            if let cut = state.cut {
                if now - cut >= Self.patience { begin(key, members, at: now) }
            } else if now - state.began >= limit.length || state.frames >= Self.mostFrames
                || bytes(key, state.part) >= limit.bytes
            {
                if let leader = Self.leader(of: members) {
                    states[key]?.cut = now
                    leader.cut()
                } else {
                    begin(key, members, at: now)
                }
            }
        }
    }

    /// A track has continued in another file: the others follow, if that was requested, or if players support nothing else (`isOtherFormat`).
    mutating func opened(
        _ track: RecordedTrack, isOtherFormat: Bool, _ key: Key, _ members: [RecordedTrack], at now: MonotonicTime
    ) {
        guard let state = states[key], isOtherFormat || (state.cut != nil && track === Self.leader(of: members)) else {
            return
        }
        begin(key, members, at: now, with: track)
    }

    private mutating func begin(
        _ key: Key, _ members: [RecordedTrack], at now: MonotonicTime, with first: RecordedTrack? = nil
    ) {
        guard let part = states[key]?.part else { return }
        states[key] = State(part: part + 1, began: now)
        for member in members { member.move(toPart: part + 1, isThere: member === first) }
    }

    private static func leader(of members: [RecordedTrack]) -> RecordedTrack? {
        let videos = members.filter { $0.isOpen && $0.summary.kind == "video" }
        return videos.first { $0.summary.source == "camera" } ?? videos.first
    }
}

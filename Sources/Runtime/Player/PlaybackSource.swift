import MediaControl
import Movies
import Playback
public import Primitives
import Rooms

/// The source of a playback.
public enum PlaybackSource: Sendable, Hashable {
    /// A file below the configured folder, with `/` between folders.
    case file(String)
    /// An earlier recording by its sid, and the name of one of its files; nil: all of them.
    case recording(String, file: String?)
}

/// One file of a recording, for the player.
public struct RecordedFile: Sendable, Hashable {
    /// Its path, which the server made.
    public var path: String
    /// The time of its first sample, relative to the other files.
    public var start: TimeSpan

    /// A file.
    public init(path: String, start: TimeSpan) {
        self.path = path
        self.start = start
    }
}

/// The tracks of an open source, each with the file that it is read from.
struct OpenedTracks: Sendable {
    struct Track: Sendable {
        var track: PlayableTrack
        var file: PlayedFile
    }

    let tracks: [Track]

    /// The playable tracks of `files`, the first of each kind; tracks of a later file begin later by its start.
    init(_ files: [(file: PlayedFile, start: TimeSpan)]) throws(PlaybackRefusal) {
        var found: [Track] = []
        let first = files.map(\.start).min() ?? .zero
        for (file, start) in files {
            for track in try file.movie().tracks {
                // A track that is not played is no obstacle, whatever its format.
                guard !found.contains(where: { $0.track.kind == (track.isVideo ? .video : .audio) }) else { continue }
                let playable = try PlayableTrack(track, delay: start - first)
                guard !found.contains(where: { $0.track.kind == playable.kind }) else { continue }
                found.append(Track(track: playable, file: file))
            }
        }
        guard !found.isEmpty else { throw .movie(.noTracks) }
        tracks = found
    }

    /// From the first sample to the end of the last.
    var duration: TimeSpan {
        PlaybackSchedule(tracks.map(\.track), loops: false, at: .zero).duration
    }

    /// The formats that a room checks.
    var formats: [PlaybackFormat] {
        tracks.map { item in
            var format = PlaybackFormat(codec: item.track.codec)
            if let size = item.track.format.size { (format.width, format.height) = (size.width, size.height) }
            switch item.track.format {
            case .h264(_, let sets, _, _):
                if let set = sets.first, set.count >= 4 { format.profileLevelID = set[1...3].hexadecimal }
            case .vp9(let profile, _), .av1(let profile, _, _): format.profile = Int(profile)
            default: break
            }
            return format
        }
    }
}

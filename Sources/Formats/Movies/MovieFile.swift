/// A movie that any program wrote, in any container: its tracks, and where each of their samples is.
public struct MovieFile: Sendable, Hashable {
    /// The tracks for audio and video, in the order of the file.
    public var tracks: [MovieTrack]

    /// Maximum samples that are read, and that joined movies have, of all tracks together: nine hours of 60 frames per second, 64 MB of memory.
    public static let maximumSamples = 2_000_000
    /// More tracks than any program makes, and than a recording of a room has: the recorder joins 400 files at most.
    public static let maximumTracks = 512

    /// A movie of these tracks.
    public init(tracks: [MovieTrack] = []) { self.tracks = tracks }
}

/// One track of a movie.
public struct MovieTrack: Sendable, Hashable {
    /// The number by which the rest of the file names it.
    public let id: UInt32
    /// Whether it is a video; otherwise it is audio.
    public let isVideo: Bool
    /// What a decoder needs before the first sample.
    public let format: MovieFormat
    /// The same as stored in an MP4 file: the sample entry's box. Empty for other containers.
    public let description: [UInt8]
    /// How the video is to be rotated.
    public let rotation: Rotation
    /// Units of time per second, at least 1.
    public let timescale: UInt32
    /// In the order of decoding, with times at which they are shown.
    public var samples: [MovieSample]
    /// What was added to each time of the file, in units of the timescale: the delay of an edit list, minus the part that is skipped at the beginning.
    public let shift: Int64

    /// A track.
    public init(
        id: UInt32, isVideo: Bool, format: MovieFormat, description: [UInt8] = [], rotation: Rotation = .none,
        timescale: UInt32, samples: [MovieSample] = [], shift: Int64 = 0
    ) {
        self.id = id
        self.isVideo = isVideo
        self.format = format
        self.description = description
        self.rotation = rotation
        self.timescale = timescale
        self.samples = samples
        self.shift = shift
    }
}

/// One sample: a frame, or a packet of audio.
public struct MovieSample: Sendable, Hashable {
    /// Where its bytes are in the file.
    public var offset: Int64
    /// When it is shown, in units of the track's timescale; negative for a sample that is decoded but not shown.
    public var time: Int64
    /// Bytes of it.
    public var length: UInt32
    /// How long it is shown, in units of the track's timescale.
    public var duration: UInt32
    /// Whether a decoder can start with it.
    public var isSync: Bool

    /// A sample.
    public init(offset: Int64, time: Int64, length: UInt32, duration: UInt32, isSync: Bool) {
        self.offset = offset
        self.time = time
        self.length = length
        self.duration = duration
        self.isSync = isSync
    }
}

/// How far a video is to be rotated clockwise when it is shown.
public enum Rotation: Int, Sendable, Hashable, CaseIterable {
    case none = 0
    case quarter = 90
    case half = 180
    case threeQuarters = 270
}

/// Width and height of a video in pixels.
public struct VideoSize: Sendable, Hashable {
    /// Width in pixels, 1 to 65,535.
    public var width: Int
    /// Height in pixels, 1 to 65,535.
    public var height: Int

    /// A size.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}

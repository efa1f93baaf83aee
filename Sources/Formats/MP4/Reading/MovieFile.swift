/// A movie that some program wrote: its tracks, and where each of their samples lies.
public struct MovieFile: Sendable, Hashable {
    /// The tracks for audio and video, in the order of the file.
    public internal(set) var tracks: [MovieTrack] = []

    /// A movie without tracks.
    init() {}
}

/// One track of a movie.
public struct MovieTrack: Sendable, Hashable {
    /// The number by which fragments name it.
    public let id: UInt32
    /// Whether it is a video; otherwise it is audio.
    public let isVideo: Bool
    /// What a decoder needs before the first sample.
    public let format: MovieFormat
    /// The same as it lies in the file: the sample entry's box.
    var description: [UInt8] = []
    /// How the video is to be turned.
    var rotation = Rotation.none
    /// Units of time per second, at least 1.
    public let timescale: UInt32
    /// In the order of decoding, with times at which they are shown.
    public internal(set) var samples: [MovieSample] = []
    /// Added to each time by the edit list, in units of the timescale: a delay, less what is skipped at the beginning.
    let shift: Int64
}

/// One sample: a frame, or a packet of audio.
public struct MovieSample: Sendable, Hashable {
    /// Where its bytes lie in the file.
    public var offset: Int64
    /// When it is shown, in units of the track's timescale; negative for what the edit list skips.
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

/// Why a file cannot be read. `rawValue` is the stable word.
public enum MovieFault: String, Error, Sendable, Hashable, CaseIterable {
    /// It does not begin as a movie does, or has no `moov`.
    case notMovie = "not_a_movie"
    /// A box or a table contradicts itself or the length of the file.
    case malformed
    /// More samples, or a larger table, than is read.
    case tooLarge = "too_large"
    /// A track changes its format within the file (several sample entries in use), or its data is in another file.
    case severalFormats = "several_formats"
    /// It has no track for audio or video.
    case noTracks = "no_tracks"
}

public import MediaControl
public import Movies
public import Primitives

/// Why a file cannot be played as it is. Nothing is transcoded.
public enum PlaybackRefusal: Error, Sendable, Hashable {
    /// No RTP payload format is implemented for the codec, named as in the container (`mp4a`, `hvc1`, `A_VORBIS` …).
    case codec(String)
    /// Frames are sent in another order than they are shown (B frames), which receivers of real-time video do not expect.
    case reorderedFrames
    /// The video has no frame with which a decoder can start.
    case noKeyframe
    /// Opus with more than two channels, or H.264 without parameter sets.
    case format(String)
    /// A sample is more than a year after the beginning, or is larger than `PlayableTrack.maximumSample`.
    case tooLarge
    /// The file cannot be read as MP4, WebM or Matroska.
    case movie(MovieFault)

    /// A stable word.
    public var word: String {
        switch self {
        case .codec: "codec_not_playable"
        case .reorderedFrames: "reordered_frames"
        case .noKeyframe: "no_keyframe"
        case .format: "format_not_playable"
        case .tooLarge: "too_large"
        case .movie(let fault): fault.rawValue
        }
    }

    /// A sentence for people.
    public var sentence: String {
        switch self {
        case .codec(let name): "the codec \(name) cannot be played without transcoding"
        case .reorderedFrames: "the video has frames in another order than they are shown (B frames)"
        case .noKeyframe: "the video has no keyframe"
        case .format(let what): what
        case .tooLarge: "a sample is too large, or lies too far from the beginning"
        case .movie(let fault): "the file cannot be read as MP4, WebM or Matroska (\(fault.rawValue))"
        }
    }
}

/// A track of a movie that can be sent as it is.
public struct PlayableTrack: Sendable {
    /// The codec, as the media plane names it.
    public let codec: Codec
    /// The format with its parameter sets.
    public let format: MovieFormat
    /// In the order of sending; the first of a video is a sync sample.
    public let samples: [MovieSample]
    /// Units of time per second in `samples`.
    public let timescale: UInt32
    /// RTP clock: 48,000 for Opus, 90,000 for video.
    public let clockRate: UInt32
    /// The longest time between two keyframes of a video, or from the last one to the end: a viewer who joins waits at most this long. Nil for audio. Computed
    /// only once, because a file may have millions of samples.
    public let longestKeyframeInterval: TimeSpan?

    /// The largest sample that is read: a lossless frame of 4K.
    public static let maximumSample = 8 << 20
    /// Times are limited to a year, so that their sums and products stay in range.
    private static let maximumSeconds: Int64 = 31_536_000

    /// Audio or video.
    public var kind: MediaKind { codec.kind }

    /// Checks a track of a movie that begins `delay` later than others with which it is played.
    public init(_ track: MovieTrack, delay: TimeSpan = .zero) throws(PlaybackRefusal) {
        codec = try Self.codec(of: track.format)
        format = track.format
        timescale = track.timescale
        clockRate = codec.kind == .audio ? 48_000 : 90_000
        let limit = Self.maximumSeconds * Int64(track.timescale)
        var kept = track.samples
        if codec.kind == .video {
            guard let first = kept.firstIndex(where: \.isSync) else { throw .noKeyframe }
            kept.removeFirst(first)
        }
        let later = delay.units(per: track.timescale)
        if later != 0 { for index in kept.indices { kept[index].time = kept[index].time &+ later } }
        var last = Int64.min
        for sample in kept {
            guard sample.length > 0, sample.length <= UInt32(Self.maximumSample), sample.time.magnitude < UInt64(limit)
            else { throw .tooLarge }
            guard sample.time > last else { throw .reorderedFrames }
            last = sample.time
        }
        guard !kept.isEmpty else { throw .noKeyframe }
        samples = kept
        longestKeyframeInterval =
            codec.kind == .video ? Self.longestKeyframeInterval(of: kept, timescale: track.timescale) : nil
    }

    private static func longestKeyframeInterval(of samples: [MovieSample], timescale: UInt32) -> TimeSpan? {
        guard let first = samples.first, let last = samples.last else { return nil }
        var (keyframe, longest) = (first.time, Int64(0))
        for sample in samples where sample.isSync {
            longest = max(longest, sample.time - keyframe)
            keyframe = sample.time
        }
        return .units(max(longest, last.time + Int64(max(last.duration, 1)) - keyframe), per: timescale)
    }

    private static func codec(of format: MovieFormat) throws(PlaybackRefusal) -> Codec {
        switch format {
        case .h264: return .h264
        case .vp8: return .vp8
        case .vp9: return .vp9
        case .av1: return .av1
        case .opus(let channels):
            guard (1...2).contains(channels) else {
                throw .format("Opus with \(channels) channels has no payload format")
            }
            return .opus
        case .other(let name): throw .codec(name)
        }
    }

    /// When sample `index` is shown, from the file's zero.
    public func time(of index: Int) -> TimeSpan { .units(samples[index].time, per: timescale) }

    /// When the last sample ends.
    var end: TimeSpan {
        guard let last = samples.last else { return .zero }
        return .units(last.time, per: timescale) + .units(Int64(max(last.duration, 1)), per: timescale)
    }

    /// `time` in units of the RTP clock, rounded: consecutive samples keep their distances to within a tick, and exactly where the timescale divides the clock.
    func clockUnits(of index: Int) -> Int64 {
        let time = samples[index].time
        let seconds = time / Int64(timescale), rest = time % Int64(timescale)
        let scaled = rest * Int64(clockRate)
        let half = Int64(timescale) / 2 * (scaled < 0 ? -1 : 1)
        return seconds * Int64(clockRate) + (scaled + half) / Int64(timescale)
    }

    /// The last sample that is not later than `time` and with which a decoder can start.
    func syncIndex(atOrBefore time: TimeSpan) -> Int {
        var index = self.index(atOrAfter: time)
        if index == samples.count || self.time(of: index) > time { index -= 1 }
        while index > 0, !samples[index].isSync { index -= 1 }
        return max(index, 0)
    }

    /// The first sample that is not earlier than `time`; the number of samples if there is none.
    func index(atOrAfter time: TimeSpan) -> Int {
        var low = 0, high = samples.count
        while low < high {
            let middle = (low + high) / 2
            if self.time(of: middle) < time { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension TimeSpan {
    /// `count` units, of which `scale` are a second; exact to the nanosecond for a year.
    static func units(_ count: Int64, per scale: UInt32) -> TimeSpan {
        let seconds = count / Int64(scale), rest = count % Int64(scale)
        return .nanoseconds(seconds * 1_000_000_000 + rest * 1_000_000_000 / Int64(scale))
    }

    /// In units, of which `scale` are a second, rounded.
    func units(per scale: UInt32) -> Int64 {
        let seconds = nanoseconds / 1_000_000_000, rest = nanoseconds % 1_000_000_000
        let half: Int64 = rest < 0 ? -500_000_000 : 500_000_000
        return seconds * Int64(scale) + (rest * Int64(scale) + half) / 1_000_000_000
    }
}

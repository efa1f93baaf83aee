import MP4
import MediaControl
import Movies
import Primitives
import Recording

/// When each part of a recording is shown, to make one video from it.
public struct RecordingTimeline: Sendable, Hashable {
    /// One track of one file.
    public struct Part: Sendable, Hashable {
        /// The file's name in the recording's folder.
        public var file: String
        /// The index of the track in the file.
        public var stream: Int
        /// `TR_…`.
        public var track: String
        /// `PA_…`.
        public var participant: String
        public var isVideo: Bool
        public var isScreen: Bool
        /// Degrees clockwise by which a player turns it.
        public var rotation: Int
        /// When the file begins, in microseconds after the first of the recording's media.
        public var start: Int64
        /// How long the file's media is, by its own clock.
        public var length: Int64
        /// How many times longer it takes on the timeline than by its own clock: publishers' clocks differ.
        public var stretch: Double
        /// When something can be seen or heard, in microseconds on the timeline, in order.
        public var spans: [Range<Int64>]

        /// A part.
        public init(
            file: String, stream: Int = 0, track: String, participant: String, isVideo: Bool, isScreen: Bool = false,
            rotation: Int = 0, start: Int64, length: Int64, stretch: Double = 1, spans: [Range<Int64>]
        ) {
            self.file = file
            self.stream = stream
            self.track = track
            self.participant = participant
            self.isVideo = isVideo
            self.isScreen = isScreen
            self.rotation = rotation
            self.start = start
            self.length = length
            self.stretch = stretch
            self.spans = spans
        }
    }

    /// In the order in which tracks were recorded.
    public private(set) var parts: [Part] = []
    /// Names of files that cannot be read.
    public private(set) var unreadable: [String] = []

    /// A camera's video without a frame for this long is not shown: its publisher has switched it off, or cannot send.
    static let longestStill: Int64 = 3_000_000

    /// A timeline of these parts.
    public init(_ parts: [Part]) { self.parts = parts }

    /// Its duration, in microseconds.
    public var length: Int64 { parts.flatMap(\.spans).map(\.upperBound).max() ?? 0 }

    init(_ summary: RecordingSummary, folder: String, decodeLine: @escaping @Sendable ([UInt8]) -> LogLine?) {
        let planner = JoinPlanner(summary, folder: folder, decodeLine: decodeLine)
        let present = Set(summary.storedFiles.map(\.name))
        let own: [JoinPlanner.Item] = summary.tracks.flatMap { track in
            track.files.filter { $0.joined == nil && $0.isFinished && present.contains($0.name) }.map { (track, $0) }
        }
        for (item, place, _) in planner.places(of: own) {
            guard let movie = RecordingFile("\(folder)/\(item.file.name)")?.movie() else {
                unreadable.append(item.file.name)
                continue
            }
            add(movie.tracks[0], 0, item.track, item.file.name) { place.microseconds(at: $0) }
        }
        for joined in summary.joined ?? [] where joined.state == .ready && present.contains(joined.name) {
            guard let movie = RecordingFile("\(folder)/\(joined.name)")?.movie() else {
                unreadable.append(joined.name)
                continue
            }
            let start = (joined.startMilliseconds ?? 0) * 1_000
            for (index, track) in movie.tracks.enumerated() {
                guard let content = joined.content, content.indices.contains(index),
                    let recorded = summary.tracks.first(where: { $0.sid == content[index] })
                else { continue }
                let scale = Int64(track.timescale)
                add(track, index, recorded, joined.name) { start + $0 * 1_000_000 / scale }
            }
        }
        align(summary)
    }

    private mutating func add(
        _ track: MovieTrack, _ stream: Int, _ recorded: RecordingSummary.Track, _ file: String,
        moment: (Int64) -> Int64
    ) {
        guard let last = track.samples.last else { return }
        let end = last.time + Int64(last.duration)
        let scale = Int64(track.timescale)
        let isScreen = recorded.source == TrackSource.screen.rawValue
        let (start, finish) = (moment(0), moment(end))
        let length = end * 1_000_000 / scale
        var spans: [Range<Int64>] = []
        var begun = track.samples[0].time
        // A screen without changes has no frames either.
        if track.isVideo, !isScreen {
            for sample in track.samples where Int64(sample.duration) * 1_000_000 / scale > Self.longestStill {
                let until = sample.time + Self.longestStill * scale / 1_000_000
                if moment(begun) < moment(until) { spans.append(moment(begun)..<moment(until)) }
                begun = sample.time + Int64(sample.duration)
            }
        }
        if moment(begun) < finish { spans.append(moment(begun)..<finish) }
        parts.append(
            Part(
                file: file, stream: stream, track: recorded.sid, participant: recorded.participant,
                // A video whose rotation changed during the call is in several tracks of one joined file, each with its own matrix.
                isVideo: track.isVideo, isScreen: isScreen, rotation: track.rotation.rawValue, start: start,
                length: length, stretch: length > 0 ? Double(finish - start) / Double(length) : 1, spans: spans))
    }

    /// Sorts the parts by their tracks, and sets the first moment to zero.
    private mutating func align(_ summary: RecordingSummary) {
        let order = summary.tracks.map(\.sid)
        let first = parts.flatMap(\.spans).map(\.lowerBound).min() ?? 0
        parts.sort {
            (order.firstIndex(of: $0.track) ?? order.count, $0.start)
                < (order.firstIndex(of: $1.track) ?? order.count, $1.start)
        }
        for index in parts.indices {
            parts[index].start -= first
            parts[index].spans = parts[index].spans.map { $0.lowerBound - first..<$0.upperBound - first }
        }
    }
}

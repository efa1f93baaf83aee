/// Work on a finished recording: one file is made of others. Part of the recording's sidecar, and what the API shows.
public struct RecordingJob: Codable, Sendable, Hashable {
    /// What is made.
    public enum Kind: String, Codable, Sendable, Hashable, CaseIterable {
        /// One video of everybody, with all audio mixed.
        case composition
        /// One file, compressed anew to a bit rate.
        case transcode
        /// One file in another container, with its audio and videos as they are.
        case copy
    }

    /// What a copy is.
    public enum Container: String, Codable, Sendable, Hashable, CaseIterable {
        /// For players that show no VP8 in MP4.
        case webm

        /// What it holds of what is recorded; nothing in it is compressed anew.
        public func holds(_ codec: String) -> Bool { codec != "h264" }
    }

    /// How videos share the frame of a composition.
    public enum Layout: String, Codable, Sendable, Hashable, CaseIterable {
        /// All alike.
        case grid
        /// Who speaks is large.
        case speaker
        /// A screen is large.
        case presentation
    }

    /// What a video is compressed with.
    public enum VideoCodec: String, Codable, Sendable, Hashable, CaseIterable {
        case h264, vp9
    }

    /// How a video is compressed.
    public struct Encoding: Sendable, Hashable {
        public var codec: VideoCodec
        public var frameRate: Int
        /// Bits per second.
        public var bitrate: Int64

        /// An encoding.
        public init(codec: VideoCodec = .h264, frameRate: Int, bitrate: Int64) {
            self.codec = codec
            self.frameRate = frameRate
            self.bitrate = bitrate
        }
    }

    /// How far a job has come.
    public enum State: String, Codable, Sendable, Hashable, CaseIterable {
        /// It waits for its turn.
        case queued
        case running
        /// Its file is there.
        case finished
        case failed
        /// Somebody has cancelled it.
        case cancelled

        /// Whether it is still to be done.
        public var isOpen: Bool { self == .queued || self == .running }
    }

    /// What a job has made.
    public struct File: Codable, Sendable, Hashable {
        /// Its name in the recording's folder.
        public var name: String
        public var bytes: Int64
        public var durationMilliseconds: Int64
        /// Bits per second of its video, as measured.
        public var videoBitrate: Int64?

        /// A file.
        public init(name: String, bytes: Int64, durationMilliseconds: Int64, videoBitrate: Int64?) {
            self.name = name
            self.bytes = bytes
            self.durationMilliseconds = durationMilliseconds
            self.videoBitrate = videoBitrate
        }
    }

    /// `JB_…`.
    public var sid: String
    /// `RC_…`.
    public var recording: String
    public var kind: Kind
    public var state = State.queued
    /// How much is done, 0 to 1.
    public var progress: Double = 0
    /// Of a composition.
    public var layout: Layout?
    /// The name of the file that is compressed anew, or copied.
    public var source: String?
    /// Of a copy.
    public var container: Container?
    /// Of what is compressed, as are the frame rate and the bit rate.
    public var codec: VideoCodec?
    /// Samples of the frame; nil of a transcoded file: as in the source.
    public var width: Int?
    public var height: Int?
    public var frameRate: Int?
    /// Bits per second of the video.
    public var bitrate: Int64?
    /// Milliseconds since 1970.
    public var createdAt: Int64
    public var startedAt: Int64?
    public var endedAt: Int64?
    /// How often it was begun: a restart of the server begins it again.
    public var tries = 0
    /// Why it has failed.
    public var fault: String?
    /// Once it has finished.
    public var file: File?

    /// A job that waits.
    public init(
        sid: String, recording: String, kind: Kind, layout: Layout? = nil, source: String? = nil,
        container: Container? = nil, width: Int? = nil, height: Int? = nil, encoding: Encoding? = nil, createdAt: Int64
    ) {
        self.sid = sid
        self.recording = recording
        self.kind = kind
        self.layout = layout
        self.source = source
        self.container = container
        self.width = width
        self.height = height
        codec = encoding?.codec
        frameRate = encoding?.frameRate
        bitrate = encoding?.bitrate
        self.createdAt = createdAt
    }

    /// How its video is compressed; nil of a copy.
    public var encoding: Encoding? {
        guard let codec, let frameRate, let bitrate else { return nil }
        return Encoding(codec: codec, frameRate: frameRate, bitrate: bitrate)
    }

    /// How the name of its file goes on behind its id.
    public var fileSuffix: String { container.map { ".\($0.rawValue)" } ?? ".mp4" }
}

/// Work on a finished recording, which makes one file from others. Part of the recording's sidecar, and shown by the API.
public struct RecordingJob: Codable, Sendable, Hashable {
    /// The kind of job.
    public enum Kind: String, Codable, Sendable, Hashable, CaseIterable {
        /// One video of all participants, with all audio mixed.
        case composition
        /// One file, encoded again at a bit rate.
        case transcode
        /// One file in another container, with unchanged audio and videos.
        case copy
    }

    /// The container of a copy.
    public enum Container: String, Codable, Sendable, Hashable, CaseIterable {
        /// For players that do not support VP8 in MP4.
        case webm

        /// The recorded codecs that it can contain; nothing is encoded again.
        public func holds(_ codec: String) -> Bool { codec != "h264" }
    }

    /// How a composition arranges the videos.
    public enum Layout: String, Codable, Sendable, Hashable, CaseIterable {
        /// All of the same size.
        case grid
        /// The active speaker is large.
        case speaker
        /// A screen is large.
        case presentation
    }

    /// The codec of an encoded video.
    public enum VideoCodec: String, Codable, Sendable, Hashable, CaseIterable {
        case h264, vp9
    }

    /// How a video is encoded.
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

    /// The state of a job.
    public enum State: String, Codable, Sendable, Hashable, CaseIterable {
        /// It waits for its turn.
        case queued
        case running
        /// Its file is complete.
        case finished
        case failed
        /// Somebody has cancelled it.
        case cancelled

        /// Whether it has not ended yet.
        public var isOpen: Bool { self == .queued || self == .running }
    }

    /// The file that a job has made.
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
    /// The part that is done, 0 to 1.
    public var progress: Double = 0
    /// Composition only.
    public var layout: Layout?
    /// The name of the file that is encoded again, or copied.
    public var source: String?
    /// Copy only.
    public var container: Container?
    /// For encoded files only, as are the frame rate and the bit rate.
    public var codec: VideoCodec?
    /// Pixels of the frame; nil for a transcoded file: those of the source.
    public var width: Int?
    public var height: Int?
    public var frameRate: Int?
    /// Bits per second of the video.
    public var bitrate: Int64?
    /// Milliseconds since 1970.
    public var createdAt: Int64
    public var startedAt: Int64?
    public var endedAt: Int64?
    /// How many times it was begun: a restart of the server begins it again.
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

    /// How its video is encoded; nil for a copy.
    public var encoding: Encoding? {
        guard let codec, let frameRate, let bitrate else { return nil }
        return Encoding(codec: codec, frameRate: frameRate, bitrate: bitrate)
    }

    /// The suffix of its file's name after its id.
    public var fileSuffix: String { container.map { ".\($0.rawValue)" } ?? ".mp4" }
}

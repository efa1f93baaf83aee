/// What is known of one playback: what the API shows.
public struct PlaybackSummary: Codable, Sendable, Hashable {
    /// How far a playback has come.
    public enum State: String, Codable, Sendable, Hashable, CaseIterable {
        case playing
        case paused
    }

    /// One track.
    public struct Track: Codable, Sendable, Hashable {
        /// `TR_…`.
        public var sid: String
        public var kind: String
        public var codec: String
        /// Of a video: a viewer who joins waits at most so long for a keyframe.
        public var longestKeyframeIntervalMilliseconds: Int64?
        /// Frames, or packets of audio, that were sent.
        public var samplesSent = 0
        /// RTP packets that were sent.
        public var packetsSent = 0
        /// Samples of the file that break their format, or are audio that fits into no packet, and were left out.
        public var samplesBroken = 0
    }

    /// `PB_…`.
    public var sid: String
    public var state: State
    /// The room's name, and which life of it.
    public var room: String
    public var roomSid: String
    /// `PA_…`, its participant.
    public var participant: String
    public var identity: String
    /// What is played: a file, or a recording, and which of its files.
    public var file: String?
    public var recording: String?
    /// From the beginning.
    public var positionMilliseconds: Int64
    public var durationMilliseconds: Int64
    /// Begins again at the end.
    public var loop: Bool
    /// Milliseconds since 1970.
    public var startedAt: Int64
    /// Packets that left more than 20 ms after their moment.
    public var packetsLate: UInt64 = 0
    public var tracks: [Track]
}

/// A change of a playback; what is nil stays.
public struct PlaybackChange: Sendable, Hashable {
    /// Nothing is sent; false: goes on.
    public var paused: Bool?
    /// From the beginning; the playback goes to the keyframe at or before it.
    public var positionMilliseconds: Int64?
    /// Begins again at the end.
    public var loop: Bool?

    /// No change.
    public init(paused: Bool? = nil, positionMilliseconds: Int64? = nil, loop: Bool? = nil) {
        self.paused = paused
        self.positionMilliseconds = positionMilliseconds
        self.loop = loop
    }
}

/// What the player does; for metrics.
public struct PlayerStatistics: Sendable, Hashable {
    /// Playbacks that are in a room, paused ones too.
    public var playbacks = 0
    /// Packets sent, and those of them that left more than 20 ms after their moment.
    public var packetsSent: UInt64 = 0
    public var packetsLate: UInt64 = 0
    /// Playbacks that ended because their file could not be read.
    public var failures: UInt64 = 0

    /// Nothing.
    public init() {}
}

/// How files are played.
public struct PlayerConfiguration: Sendable, Hashable {
    /// Files below it may be played; nil: recordings only.
    public var directory: String?
    /// Playbacks at a time.
    public var maximumPlaybacks = 50

    /// Files of `directory`.
    public init(directory: String?) { self.directory = directory }
}

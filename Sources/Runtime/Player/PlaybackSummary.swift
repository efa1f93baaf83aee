/// The description of one playback that the API shows.
public struct PlaybackSummary: Codable, Sendable, Hashable {
    /// The state of a playback.
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
        /// Video only: the longest time that a viewer who joins waits for a keyframe.
        public var longestKeyframeIntervalMilliseconds: Int64?
        /// Frames, or packets of audio, that were sent.
        public var samplesSent = 0
        /// RTP packets that were sent.
        public var packetsSent = 0
        /// Samples that were skipped, because they break their format or are audio that fits into no packet.
        public var samplesBroken = 0
    }

    /// `PB_…`.
    public var sid: String
    public var state: State
    /// The room's name and sid.
    public var room: String
    public var roomSid: String
    /// `PA_…`, its participant.
    public var participant: String
    public var identity: String
    /// The source: a file, or a recording and one of its files.
    public var file: String?
    public var recording: String?
    /// The position from the beginning.
    public var positionMilliseconds: Int64
    public var durationMilliseconds: Int64
    /// Whether it begins again at the end.
    public var loop: Bool
    /// Milliseconds since 1970.
    public var startedAt: Int64
    /// Packets that were sent more than 20 ms after their due time.
    public var packetsLate: UInt64 = 0
    public var tracks: [Track]
}

/// A change of a playback; nil leaves a value unchanged.
public struct PlaybackChange: Sendable, Hashable {
    /// Pauses; false: resumes.
    public var paused: Bool?
    /// From the beginning; the playback continues at the keyframe at or before it.
    public var positionMilliseconds: Int64?
    /// Whether it begins again at the end.
    public var loop: Bool?

    /// No change.
    public init(paused: Bool? = nil, positionMilliseconds: Int64? = nil, loop: Bool? = nil) {
        self.paused = paused
        self.positionMilliseconds = positionMilliseconds
        self.loop = loop
    }
}

/// Counters and gauges of the player, for metrics.
public struct PlayerStatistics: Sendable, Hashable {
    /// Playbacks that are in a room, paused ones too.
    public var playbacks = 0
    /// Packets sent, and those that were sent more than 20 ms after their due time.
    public var packetsSent: UInt64 = 0
    public var packetsLate: UInt64 = 0
    /// Playbacks that ended because their file could not be read.
    public var failures: UInt64 = 0

    /// All zero.
    public init() {}
}

/// The configuration of the player.
public struct PlayerConfiguration: Sendable, Hashable {
    /// Files below it may be played; nil: only recordings.
    public var directory: String?
    /// The maximum number of playbacks at a time.
    public var maximumPlaybacks = 50

    /// Files of `directory`.
    public init(directory: String?) { self.directory = directory }
}

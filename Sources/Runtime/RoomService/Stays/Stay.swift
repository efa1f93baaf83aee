public import MediaControl
public import Primitives
public import Rooms

/// How one participant's network and media did in some seconds.
public struct StaySample: Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// What its connections received from it and sent to it since the sample before.
    public var uplink: Bitrate
    public var downlink: Bitrate
    /// The worse of what was lost on the way to it and from it, 0 to 1.
    public var loss: Double
    public var roundTripMilliseconds: Int?
    /// 0 (lost) to 5 (excellent).
    public var quality: Int

    /// A sample at `at`.
    public init(
        at: Int64, uplink: Bitrate, downlink: Bitrate, loss: Double, roundTripMilliseconds: Int?, quality: Int
    ) {
        self.at = at
        self.uplink = uplink
        self.downlink = downlink
        self.loss = loss
        self.roundTripMilliseconds = roundTripMilliseconds
        self.quality = quality
    }
}

/// How a participant's network did over a stay, and why its videos looked as they did. Each list is bounded, oldest first.
public struct StayHistory: Sendable, Hashable {
    /// Of the last hour, one in 5 s.
    public var samples: [StaySample] = []
    /// The last decisions about what the participant was sent, of each connection.
    public var decisions: [DecisionReport] = []
    /// Decisions that were in force when it was looked at, from before the last ones, too.
    public var seenDecisions: [DecisionReport] = []
    /// What the path was believed to carry in the last hour.
    public var estimates: [EstimateReport] = []

    /// Nothing is known.
    public init() {}

    /// The last decisions, and before the first of them those that were seen.
    public var allDecisions: [DecisionReport] { SeenDecision.before(decisions, seenDecisions) + decisions }
}

/// What is said of a stay when it is over.
public struct StaySummary: Sendable, Hashable {
    /// A track that was published during the stay.
    public struct Track: Sendable, Hashable {
        public var kind: MediaKind
        public var source: TrackSource
        /// As far as it was known when the track ended.
        public var codec: Codec?
        /// Milliseconds since 1970.
        public var publishedAt: Int64
        public var unpublishedAt: Int64
    }

    public var room: String
    public var roomSID: String
    /// As the participant left: name, profile, permissions, when it joined.
    public var info: ParticipantInfo
    /// Milliseconds since 1970.
    public var leftAt: Int64
    public var reason: LeaveReason
    /// Milliseconds from the join until the first peer connection was up; nil where none ever was.
    public var connectedAfterMilliseconds: Int64?
    /// Milliseconds from the join until each step, of those that were reached.
    public var steps: [JoinStep: Int64]
    /// In the order in which they were published; at most 64.
    public var tracks: [Track]
    /// What its connections carried.
    public var bytesReceived: UInt64
    public var bytesSent: UInt64
    /// Network quality over the stay, 0 to 5; nil where it ended before it was measured.
    public var averageQuality: Double?
    public var worstQuality: Int?
    /// Of the videos that it played, as its client reported; nil where it reported nothing.
    public var freezes: Freezes?
    /// How long its token was verified; nil where that was not measured.
    public var tokenVerification: TimeInterval?
    public var history = StayHistory()

    /// The summary of a stay.
    public init(
        room: String, roomSID: String, info: ParticipantInfo, leftAt: Int64, reason: LeaveReason,
        connectedAfterMilliseconds: Int64? = nil, steps: [JoinStep: Int64] = [:], tracks: [Track],
        bytesReceived: UInt64, bytesSent: UInt64,
        averageQuality: Double? = nil, worstQuality: Int? = nil, freezes: Freezes? = nil,
        tokenVerification: TimeInterval? = nil
    ) {
        self.room = room
        self.roomSID = roomSID
        self.info = info
        self.leftAt = leftAt
        self.reason = reason
        self.connectedAfterMilliseconds = connectedAfterMilliseconds
        self.steps = steps
        self.tracks = tracks
        self.bytesReceived = bytesReceived
        self.bytesSent = bytesSent
        self.averageQuality = averageQuality
        self.worstQuality = worstQuality
        self.freezes = freezes
        self.tokenVerification = tokenVerification
    }
}

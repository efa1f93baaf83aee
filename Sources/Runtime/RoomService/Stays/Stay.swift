public import MediaControl
public import Primitives
public import Rooms

/// The state of one participant's network and media in a few seconds.
public struct StaySample: Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// What its connections received from it and sent to it since the sample before.
    public var uplink: Bitrate
    public var downlink: Bitrate
    /// The worse of the loss on the way to it and from it, 0 to 1.
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

/// The state of a participant's network over a stay, and why its videos looked as they did. Each list is bounded, oldest first.
public struct StayHistory: Sendable, Hashable {
    /// Of the last hour, one in 5 s.
    public var samples: [StaySample] = []
    /// The last decisions about what the participant was sent, of each connection.
    public var decisions: [DecisionReport] = []
    /// Decisions that were in force when it was sampled, including those before the last ones.
    public var seenDecisions: [DecisionReport] = []
    /// The estimated bandwidth of the path in the last hour.
    public var estimates: [EstimateReport] = []

    /// Nothing is known.
    public init() {}

    /// The last decisions, preceded by older ones that were sampled.
    public var allDecisions: [DecisionReport] { SeenDecision.before(decisions, seenDecisions) + decisions }
}

/// The summary of a stay that has ended.
public struct StaySummary: Sendable, Hashable {
    /// A track that was published during the stay.
    public struct Track: Sendable, Hashable {
        public var kind: MediaKind
        public var source: TrackSource
        /// Its last known state when the track ended.
        public var codec: Codec?
        /// Milliseconds since 1970.
        public var publishedAt: Int64
        public var unpublishedAt: Int64
    }

    public var room: String
    public var roomSID: String
    /// The participant as it left: name, profile, permissions, when it joined.
    public var info: ParticipantInfo
    /// Milliseconds since 1970.
    public var leftAt: Int64
    public var reason: LeaveReason
    /// Milliseconds from the join until the first peer connection was up; nil if none ever was.
    public var connectedAfterMilliseconds: Int64?
    /// Milliseconds from the join until each reached step.
    public var steps: [JoinStep: Int64]
    /// In the order in which they were published; at most 64.
    public var tracks: [Track]
    /// The traffic of its connections.
    public var bytesReceived: UInt64
    public var bytesSent: UInt64
    /// Network quality over the stay, 0 to 5; nil if it ended before it was measured.
    public var averageQuality: Double?
    public var worstQuality: Int?
    /// For the videos that it played, as its client reported; nil if it reported nothing.
    public var freezes: Freezes?
    /// How long the verification of its token took; nil if that was not measured.
    public var tokenVerification: TimeSpan?
    public var history = StayHistory()

    /// The summary of a stay.
    public init(
        room: String, roomSID: String, info: ParticipantInfo, leftAt: Int64, reason: LeaveReason,
        connectedAfterMilliseconds: Int64? = nil, steps: [JoinStep: Int64] = [:], tracks: [Track],
        bytesReceived: UInt64, bytesSent: UInt64,
        averageQuality: Double? = nil, worstQuality: Int? = nil, freezes: Freezes? = nil,
        tokenVerification: TimeSpan? = nil
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

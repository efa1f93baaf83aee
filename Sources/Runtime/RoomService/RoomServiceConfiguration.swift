public import Primitives
public import Rooms

/// How rooms are made and how much one server takes.
public struct RoomServiceConfiguration: Sendable {
    /// Where a join without any room name goes (B4).
    public var defaultRoom = "Broadcast"
    /// A join may create its room; otherwise rooms come from the control API only.
    public var autoCreateRooms = true
    public var defaultPolicy = RoomPolicy()
    public var maxRooms = 10_000
    public var maxParticipants = 20_000
    public var maxParticipantsPerRoom = 2_000
    public var maxConnectionsPerParticipant = 8
    public var maxTracksPerParticipant = 32
    public var maxSubscriptionsPerParticipant = 1_000
    /// Joins a second over the whole server; more get `rate_limited`.
    public var maxJoinsPerSecond = 500
    /// A dropped socket may be resumed for this long; media goes on.
    public var resumeWindow = TimeInterval.seconds(30)
    /// A signalling session without a sign of life ends after this long (D6).
    public var keepAliveTimeout = TimeInterval.seconds(30)
    /// After a room was deleted, or a participant removed, tokens issued before are refused for this long; zero: they are not. An hour outlasts
    /// the meeting that somebody was removed from, and most tokens that are made for one.
    public var closedFor = TimeInterval.seconds(3_600)
    /// Events waiting for one session's reader; more end its stream, and it may resume.
    public var maxQueuedEvents = 1_024
    /// Past events kept for resume.
    public var maxReplayEvents = 1_024
    /// The defaults.
    public init() {}
}

import MediaControl
public import Primitives
public import Rooms

/// How rooms are created and how many one server accepts.
public struct RoomServiceConfiguration: Sendable {
    /// The room for a join without any room name.
    public var defaultRoom = "Broadcast"
    /// A join may create its room; otherwise only the control API creates rooms.
    public var autoCreateRooms = true
    public var defaultPolicy = RoomPolicy()
    public var maxRooms = 10_000
    public var maxParticipants = 20_000
    public var maxParticipantsPerRoom = 2_000
    public var maxConnectionsPerParticipant = 8
    /// Peer connections over the whole server, limited by its memory; a join that needs more is refused with `overloaded`. A member can always open
    /// the one or two that came with the join.
    public var maxConnections = Int.max
    /// At most as many as a worker supports.
    public var maxTracksPerParticipant = MediaLimits.tracksPerParticipant
    /// At most as many as a worker supports.
    public var maxSubscriptionsPerParticipant = MediaLimits.subscriptionsPerParticipant
    /// Longest message that the peer of a data channel may send, as descriptions announce it; the workers must be configured alike.
    public var maxMessageBytes = DataLimits.usualLongestMessage
    /// Joins per second over the whole server; more get `rate_limited`.
    public var maxJoinsPerSecond = 500
    /// Pre-call checks at a time over the whole server; 0: none. Each carries one video of at most `PreCallCheck.maxBitrate` in both directions.
    public var maxChecks = 20
    /// Operators may capture a participant's decrypted packets.
    public var allowsCaptures = false
    /// A dropped socket may be resumed for this long; media continues.
    public var resumeWindow = TimeSpan.seconds(30)
    /// A signalling session without keep-alives ends after this long.
    public var keepAliveTimeout = TimeSpan.seconds(30)
    /// After a room was deleted, or a participant removed, tokens issued before are refused for this long; zero: they are not. An hour outlasts
    /// the meeting that somebody was removed from, and most tokens for a meeting.
    public var closedFor = TimeSpan.seconds(3_600)
    /// Events waiting for one session's reader, for each 2,000 participants that a room may have; more end its stream, and it may resume. Twice what one step
    /// announces at most to a reader that keeps up: all others of a full room, to a member that requests the roster.
    public var maxQueuedEvents = 4_096
    /// Past events kept for resume.
    public var maxReplayEvents = 1_024
    /// Events of all rooms together that are kept for readers of the event log.
    public var maxKeptEvents = 20_000
    /// The defaults.
    public init() {}

    /// Events that may wait for the reader of one session.
    var queuedEvents: Int { maxQueuedEvents * (1 + max(0, maxParticipantsPerRoom - 1) / 2_000) }

    /// The average memory of a peer connection if every other one publishes a camera and a microphone and has one viewer (LoadTests/README.md,
    /// scenario `broadcasters`: the process grows by 298 kB for each of 400). One that only receives takes 70 kB, so one that publishes takes some 530:
    /// rooms with more publishers than viewers, or with simulcast, use the quarter that `connections(fittingInto:)` leaves.
    static let bytesPerConnection: UInt64 = 300_000
    /// The memory of the process without connections, and of the kernel's socket buffers.
    static let bytesWithoutConnections: UInt64 = 128 << 20

    /// How many peer connections fit into a memory of this size, with a quarter left for tracks that keep more than usual.
    public static func connections(fittingInto bytes: UInt64) -> Int {
        let free = bytes > bytesWithoutConnections ? bytes - bytesWithoutConnections : 0
        // A few even on the smallest machine: the kernel decides there.
        return max(16, Int(free / 4 * 3 / bytesPerConnection))
    }
}

extension RoomLimits {
    /// The configured limits; the others keep their defaults.
    init(_ configuration: RoomServiceConfiguration) {
        self.init()
        participants = configuration.maxParticipantsPerRoom
        connectionsPerParticipant = configuration.maxConnectionsPerParticipant
        tracksPerParticipant = min(configuration.maxTracksPerParticipant, tracksPerParticipant)
        subscriptionsPerParticipant = min(configuration.maxSubscriptionsPerParticipant, subscriptionsPerParticipant)
        acceptedMessageBytes = configuration.maxMessageBytes
        resumeWindow = configuration.resumeWindow
        keepAliveTimeout = configuration.keepAliveTimeout
    }
}

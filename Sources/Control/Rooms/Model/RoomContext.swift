public import Primitives
public import SDP

/// What a room knows of the place it lives in: the server's end of every transport, and bounds.
public struct RoomContext: Sendable {
    /// SHA-256 of the worker's certificate.
    public var fingerprintSHA256: [UInt8]
    /// The worker's addresses, the most wanted first.
    public var candidates: [Candidate]
    public var limits = RoomLimits()

    /// A place with these addresses.
    public init(fingerprintSHA256: [UInt8], candidates: [Candidate], limits: RoomLimits = RoomLimits()) {
        self.fingerprintSHA256 = fingerprintSHA256
        self.candidates = candidates
        self.limits = limits
    }
}

/// Bounds that hold whatever a room's policy says; each keeps one client from costing much.
public struct RoomLimits: Sendable, Hashable {
    public var participants = 2_000
    /// One to publish, one to receive, and room for clients that make one a screen share.
    public var connectionsPerParticipant = 8
    /// Cameras, screens and microphones of one person; tens at most.
    public var tracksPerParticipant = 32
    /// Audio and video of everybody in a large room, within what one description can hold.
    public var subscriptionsPerParticipant = 250
    /// Announced tracks whose offer has not come yet.
    public var announcementsPerParticipant = 64
    public var connectionIDBytes = 64
    /// A session description of a mesh call relayed as an opaque payload.
    public var relayBytes = 65_536
    /// The longest that a dropped socket may be resumed after.
    public var resumeWindow = TimeInterval.seconds(30)
    /// A signalling session without a sign of life ends after this (D6).
    public var keepAliveTimeout = TimeInterval.seconds(30)

    /// The defaults.
    public init() {}
}

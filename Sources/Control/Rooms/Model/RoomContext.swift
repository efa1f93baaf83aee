import MediaControl
public import Primitives
public import SDP

/// What a room knows of the place it lives in: the server's end of every transport, and bounds.
public struct RoomContext: Sendable {
    /// SHA-256 of the worker's certificate.
    public var fingerprintSHA256: [UInt8]
    /// The worker's addresses, the most wanted first.
    public var candidates: [Candidate]
    /// What every user name fragment begins with: a shared TCP port finds the worker by it.
    public var ufragMark: String
    public var limits = RoomLimits()

    /// A place with these addresses.
    public init(
        fingerprintSHA256: [UInt8], candidates: [Candidate], ufragMark: String = "", limits: RoomLimits = RoomLimits()
    ) {
        self.fingerprintSHA256 = fingerprintSHA256
        self.candidates = candidates
        self.ufragMark = ufragMark
        self.limits = limits
    }
}

/// Bounds that hold whatever a room's policy says; each keeps one client from costing much.
public struct RoomLimits: Sendable, Hashable {
    public var participants = 2_000
    /// One to publish, one to receive, and room for clients that make one a screen share.
    public var connectionsPerParticipant = 8
    /// One more is refused, and its publisher is told.
    public var tracksPerParticipant = MediaLimits.tracksPerParticipant
    /// One more waits until another ends, and its subscriber is told; asked for by hand it is refused.
    public var subscriptionsPerParticipant = MediaLimits.subscriptionsPerParticipant
    /// One more is refused; as many as of media.
    public var dataTracksPerParticipant = MediaLimits.tracksPerParticipant
    /// Announced tracks whose offer has not come yet.
    public var announcementsPerParticipant = 64
    public var connectionIDBytes = 64
    /// A session description of a mesh call relayed as an opaque payload.
    public var relayBytes = 65_536
    /// The longest message between members, and its topic. Longer ones go over a socket only up to `relayBytes`.
    public var messageBytes = 262_144
    public var topicBytes = 256
    /// The longest that the server accepts on a data channel: `a=max-message-size`.
    public var acceptedMessageBytes = DataLimits.usualLongestMessage
    /// Receivers that a message may name; without names it goes to everybody.
    public var messageReceivers = 256
    /// Messages of one member; twice as many at once.
    public var messagesPerSecond = 200
    /// Notifications that one member causes by what it says about itself: one for each kibibyte to each member; of five seconds at once. In a room of a hundred that
    /// is as often as a socket may ask. As many, apart from those, by what it does with its tracks.
    public var notificationsPerSecond = 20_000
    /// A WHIP or WHEP session whose connection has not come up after this ends: what a worker gives it (30 s), and half as long again for a worker
    /// that does not say so.
    public var connectTimeout = TimeInterval.seconds(45)
    /// The longest that a dropped socket may be resumed after.
    public var resumeWindow = TimeInterval.seconds(30)
    /// A signalling session without a sign of life ends after this.
    public var keepAliveTimeout = TimeInterval.seconds(30)

    /// The defaults.
    public init() {}
}

extension RoomLimits {
    func check(connectionID id: String) throws(RoomError) {
        guard !id.isEmpty, id.utf8.count <= connectionIDBytes else {
            throw RoomError(.invalidRequest, "the name of a connection must have 1 to \(connectionIDBytes) bytes")
        }
    }
}

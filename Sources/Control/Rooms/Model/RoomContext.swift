import MediaControl
public import Primitives
public import SDP

/// What a room knows of its host: the server's side of every transport, and limits.
public struct RoomContext: Sendable {
    /// SHA-256 of the worker's certificate.
    public var fingerprintSHA256: [UInt8]
    /// The worker's addresses, most preferred first.
    public var candidates: [Candidate]
    /// The beginning of every user name fragment: a shared TCP port finds the worker by it.
    public var ufragMark: String
    public var limits = RoomLimits()

    /// A context with these addresses.
    public init(
        fingerprintSHA256: [UInt8], candidates: [Candidate], ufragMark: String = "", limits: RoomLimits = RoomLimits()
    ) {
        self.fingerprintSHA256 = fingerprintSHA256
        self.candidates = candidates
        self.ufragMark = ufragMark
        self.limits = limits
    }
}

/// Limits that apply whatever a room's policy says; each bounds the cost of one client.
public struct RoomLimits: Sendable, Hashable {
    public var participants = 2_000
    /// One to publish, one to receive, and some for clients that open one per screen share.
    public var connectionsPerParticipant = 8
    /// One more is refused, and its publisher is notified.
    public var tracksPerParticipant = MediaLimits.tracksPerParticipant
    /// One more waits until another ends, and its subscriber is notified; an explicit request for one more is refused.
    public var subscriptionsPerParticipant = MediaLimits.subscriptionsPerParticipant
    /// One more is refused; as many as for media.
    public var dataTracksPerParticipant = MediaLimits.tracksPerParticipant
    /// Announced tracks whose offer has not arrived yet.
    public var announcementsPerParticipant = 64
    public var connectionIDBytes = 64
    /// A session description of a mesh call relayed as an opaque payload.
    public var relayBytes = 65_536
    /// The longest message between members, with its topic. Over a socket the limit is `relayBytes`.
    public var messageBytes = 262_144
    public var topicBytes = 256
    /// The longest message that the server accepts on a data channel: `a=max-message-size`.
    public var acceptedMessageBytes = DataLimits.usualLongestMessage
    /// The number of receivers that a message may name; without names it goes to everybody.
    public var messageReceivers = 256
    /// Messages per second of one member; bursts of twice as many.
    public var messagesPerSecond = 200
    /// Notifications per second that one member causes by changing its details: one for each kibibyte to each member; bursts of five seconds' worth. In a room
    /// of a hundred that equals the rate of a socket's requests. As many again by changing its tracks.
    public var notificationsPerSecond = 20_000
    /// A WHIP or WHEP session whose connection has not come up after this ends: the worker's own limit (30 s), and half of that again in case the worker
    /// does not report it.
    public var connectTimeout = TimeSpan.seconds(45)
    /// The maximum time after which a dropped socket may be resumed.
    public var resumeWindow = TimeSpan.seconds(30)
    /// A signalling session without keep-alives ends after this.
    public var keepAliveTimeout = TimeSpan.seconds(30)

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

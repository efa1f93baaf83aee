import MediaControl
import Primitives

/// A participant with all that belongs to it.
struct Member: Sendable {
    let session: SessionID
    /// The key whose token joined.
    let apiKey: String
    /// What its token permits; an operator may have changed what it may do since.
    var granted: Permissions
    /// The id of its token, where that has one.
    var tokenID: String?
    /// When its token expires.
    var tokenExpiry: MonotonicTime
    /// The beginning of its stay in this room.
    var joined: MonotonicTime
    /// The room that its token names, where it was moved to another one.
    var tokenRoom: String?
    /// What others see, without tracks.
    var info: ParticipantInfo
    var options: MemberOptions
    /// In the order of their making.
    var connections: [Connection] = []
    /// So many can always be opened: the server keeps room for them.
    let promisedConnections: Int
    /// Tracks that it does not want although it subscribes automatically.
    var unwanted: Set<TrackID> = []
    /// What its token lets it receive; nil: as the room says.
    var grantedRules: [SubscribeRule]?
    /// What an operator lets it receive; nil: as the token says.
    var operatorRules: [SubscribeRule]?
    /// Whom it lets receive its tracks; nil: everybody.
    var audience: Audience?
    var announcements: [AnnouncedTrack] = []
    /// The number of the last event sent to it.
    var sequence: UInt64 = 0
    var allVideoPaused = false
    /// Limits what it sends.
    var messages = RateLimit()
    /// The last sign of life.
    var lastSign: MonotonicTime
    /// Whether one of its connections ever came up.
    var hasConnected = false
    /// What its stay has reached.
    var steps: Set<JoinStep> = []
    /// Since when there is no socket.
    var detachedSince: MonotonicTime?

    var profile: ParticipantProfile { info.profile }
    var permissions: Permissions { info.permissions }
    /// Rules of its own, which stand in the place of the room's.
    var subscribeRules: [SubscribeRule]? { operatorRules ?? grantedRules }
    var isHidden: Bool { info.permissions.hidden }

    func connectionIndex(_ id: String) -> Int? { connections.firstIndex { $0.id == id } }
}

/// A track that a member has announced and not offered yet.
struct AnnouncedTrack: Sendable {
    /// The sid that it will have.
    let sid: String
    var announcement: TrackAnnouncement
}

/// How a member wants to be served.
struct MemberOptions: Sendable {
    var autoSubscribe: Bool
    /// Receives no video, whatever the room allows.
    var audioOnly: Bool
    var hasRoster: Bool
    var wantsSpeakers: Bool
    /// The connection on which subscriptions are put; nil until one is known.
    var receivingConnection: String?
    var offering = Offering.server
    var streamNames = StreamNames.publisher
    /// What the token and the member itself say about its bandwidth.
    var grantedBandwidth: BandwidthProfile
    var bandwidth: BandwidthProfile
    /// Has a socket: gets events, must give signs of life. WHIP and WHEP sessions have none.
    var isSignalled: Bool
    /// Whether messages of others are sent to it.
    var wantsMessages: Bool
    /// How its messages are written on data channels.
    var dataProtocol: DataProtocol
    /// WHEP: sections made by the client's offer show whom they follow.
    var follow: FollowTarget?

    /// Whether the server may make offers to it.
    var takesOffers: Bool { isSignalled && offering != .client }
}

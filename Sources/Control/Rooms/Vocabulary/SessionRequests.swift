public import AccessTokens
public import MediaControl

/// Names one session: a participant's stay, across dropped sockets. Unguessable, so it also serves as the secret for a resume and
/// as the last part of a WHIP resource URL.
public struct SessionID: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let rawValue: String

    /// The session called `rawValue`.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// What a joining client requests beyond its token.
public struct JoinRequest: Sendable, Hashable {
    /// The token's claims; their room takes precedence over `room`.
    public var claims: AccessClaims
    /// The requested room; nil: the configured default room; empty: a generated name.
    public var room: String?
    /// For a room that requires one.
    public var password: String?
    /// Where the client is, as far as the edge knows; only to limit how often a client may try.
    public var address = ""
    /// The request that carried the token, as far as the edge knows.
    public var origin: JoinOrigin?
    /// Used if the token has none.
    public var name: String?
    public var metadata: String?
    public var profile = ParticipantProfile.full
    /// Every track of others is subscribed automatically.
    public var autoSubscribe = true
    /// Every data track of others, too.
    public var subscribesToDataTracks = false
    /// A requested track that it may not receive, or no longer, is subscribed as soon as it may; other clients request it again.
    public var awaitsPermission = false
    /// Video of others is never offered to it.
    public var audioOnly = false
    /// A publish-only member gets the roster and events of others only if it requests them.
    public var wantsRoster: Bool?
    /// Whether it receives messages of others; nil: unless it only publishes.
    public var wantsMessages: Bool?
    /// How its messages are encoded on its data channels.
    public var dataProtocol = DataProtocol.martlet
    /// How its client opens new connections when it has lost all of them.
    public var recovery = Recovery.inSession
    /// It can be notified that it is in another room, and keep its connections. Otherwise a move to any room ends them.
    public var understandsMoves = true
    /// Its protocol has a request to unmute, which the user decides on.
    public var understandsUnmuteRequests = true
    /// It is notified when the first connection of a participant comes up.
    public var wantsConnections = false
    /// Speaker lists; changes of the dominant speaker come with the roster.
    public var wantsSpeakers = false
    /// The client's own id for the connection for its subscriptions; nil: the server opens "sub".
    public var receivingConnection: String?
    /// The client's name for itself; nil: unknown.
    public var client: String?
    /// Who opens connections and makes offers for what the client receives.
    public var offering = Offering.server
    /// How the media streams that the client receives are named.
    public var streamNames = StreamNames.publisher
    /// In addition to those of the token, if the token permits changing them.
    public var attributes: [String: String] = [:]
    /// What its client states about itself.
    public var clientTraits = ClientTraits()
    /// Its media is encrypted end to end.
    public var encrypts = false
    /// Its preferences for its bandwidth; they only tighten the limits of room and token.
    public var bandwidth = BandwidthProfile()

    /// A join with `claims` into `room`.
    public init(claims: AccessClaims, room: String? = nil) {
        self.claims = claims
        self.room = room
    }
}

/// How a client opens new connections after the server has ended all of them.
public enum Recovery: Sendable, Hashable {
    /// It opens them in the same session.
    case inSession
    /// It joins again; the session continues with that join.
    case byJoining
}

/// Who makes the offers for the media that a client receives.
public enum Offering: Sendable, Hashable {
    /// The server, on whichever connection it is, once there is something to send.
    case server
    /// The server, on a separate connection that it opens at once.
    case serverAtOnce
    /// Only the client: it is notified of missing sections (``RoomEvent/sectionsNeeded(connection:audio:video:)``) and offers them.
    case client
}

/// How the media streams (RFC 8830) that a client receives are named.
public enum StreamNames: Sendable, Hashable {
    /// The publisher's sid; screens have their own stream.
    case publisher
    /// `PA_…|TR_…`: one per track, so that a client whose browser renames tracks can identify them.
    case publisherAndTrack
}

/// A request of a session that needs no exchange of descriptions. Participants and tracks are named by sid.
public enum SessionRequest: Sendable, Hashable {
    /// Announces what a track is, before or after its offer.
    case announce(TrackAnnouncement)
    /// Mutes the session's own track (a moderator: anybody's; unmuting others is refused).
    case setMuted(track: String, Bool)
    case unpublish(track: String)
    case subscribe(track: String)
    case unsubscribe(track: String)
    /// Turns automatic subscription on or off for future tracks.
    case setAutoSubscribe(Bool)
    case setPaused(track: String, Bool)
    case setPreference(track: String, LayerPreference)
    /// All preferences of a viewer for one track; omitted ones are reset to their defaults.
    case setView(track: String, TrackView)
    /// The same, also for a future subscription if the track is not received yet.
    case setViewInAdvance(track: String, TrackView)
    /// All preferences of a participant for its bandwidth; omitted ones are reset to their defaults.
    case setBandwidth(BandwidthProfile)
    /// Pauses all video while set.
    case pauseAllVideo(Bool)
    /// No video from now on (true), or an upgrade by renegotiation (false).
    case setAudioOnly(Bool)
    /// nil leaves a field unchanged.
    case setMetadata(name: String?, metadata: String?)
    /// Named texts; an empty one removes the name, others remain.
    case setAttributes([String: String])
    /// To one other member, named by sid or identity.
    case relay(to: String, payload: String)
    case requestKeyframe(track: String)
    /// Who may receive the session's own tracks; nil: everybody.
    case setAudience(Audience?)
    /// Moderators only.
    case remove(participant: String)
    /// Asks a publisher to unmute a track; it may or may not do so.
    case requestUnmute(track: String)
    /// Admits a waiting guest, or refuses it.
    case letIn(identity: String)
    case turnAway(identity: String)
    /// The roster and others' events, for a publish-only member that requests them later.
    case requestRoster
    case wantSpeakers(Bool)
    /// The playback statistics of videos that the session receives.
    case report([PlaybackReport])
    /// To everybody else, or to the named receivers.
    case send(RoomMessage)
    case dataTrack(DataTrackRequest)
}

/// What a publisher announces about a track. What it omits remains as it is, or is the default if nothing was announced before.
public struct TrackAnnouncement: Sendable, Hashable {
    /// The msid track id, or the mid.
    public var clientTrackID: String
    /// The sid of the track that it is about, published or announced, even if another track has the same id; nil: it is about the track with that id.
    public var sid: String?
    public var source: TrackSource
    public var name: String?
    public var muted: Bool?
    public var width: Int?
    public var height: Int?
    /// What matters in the video when not everything can be sent; by default its source decides.
    public var hint: ContentHint?
    /// How much it matters to its viewers, unless they specify otherwise.
    public var priority: TrackPriority?
    /// Its kind, if the client may offer it under another id than the announced one (Firefox renames tracks): then the oldest announcement of that kind
    /// is meant. nil: by the id only.
    public var kind: MediaKind?
    /// Information for subscribers' clients; nil: unchanged.
    public var details: TrackDetails?
    /// The codec in which it is to be sent, and the other one in which its publisher can also send it, for subscribers that cannot play the first; empty: as
    /// the offer prefers.
    public var codecs: [Codec] = []
    /// The id of its track in that other codec, if known already; nil: that track is announced separately (`backupOf`).
    public var backupTrackID: String?
    /// Whether both are sent then.
    public var backupCodecPolicy = BackupCodecPolicy.simulcast
    /// The sid of the track whose encoding in the backup codec this is; nil: a separate track.
    public var backupOf: String?

    /// A track from `source`.
    public init(
        _ clientTrackID: String, source: TrackSource, name: String? = nil, muted: Bool? = nil, width: Int? = nil,
        height: Int? = nil, hint: ContentHint? = nil, priority: TrackPriority? = nil
    ) {
        self.clientTrackID = clientTrackID
        self.source = source
        self.name = name
        self.muted = muted
        self.width = width
        self.height = height
        self.hint = hint
        self.priority = priority
    }
}

/// A viewer's preferences for one track that it receives.
public struct TrackView: Sendable, Hashable {
    public var preference = LayerPreference.best
    public var display = DisplayPreference()
    public var isPaused = false

    /// The default: everything that is sent.
    public init() {}
}

/// The state that a client gets first.
public struct SessionSnapshot: Sendable, Hashable {
    public var room: RoomInfo
    /// The client's own participant.
    public var participant: ParticipantInfo
    /// All other participants that it may know of; empty without roster.
    public var others: [ParticipantInfo]
    public var subscriptions: [SubscriptionInfo]
    /// The guests in the waiting room, if the client may admit them.
    public var guests: [WaitingGuest] = []
    /// Data tracks that the client receives.
    public var dataTracks: [ReceivedDataTrack] = []
    /// The server is about to end.
    public var drain: DrainNotice?
    /// After a move: the client continues by joining this room.
    public var isAwaited = false
    /// sid of the dominant speaker.
    public var dominantSpeaker: String?
    /// The number of the last event that is included; deltas continue after it.
    public var sequence: UInt64

    /// A snapshot.
    public init(
        room: RoomInfo, participant: ParticipantInfo, others: [ParticipantInfo], subscriptions: [SubscriptionInfo],
        dominantSpeaker: String?, sequence: UInt64
    ) {
        self.room = room
        self.participant = participant
        self.others = others
        self.subscriptions = subscriptions
        self.dominantSpeaker = dominantSpeaker
        self.sequence = sequence
    }
}

/// The server's answer to a client's offer.
public struct ConnectionAnswer: Sendable, Hashable {
    public var sdp: String
    /// mid of the client's publishing sections -> sid of the resulting track; and of receiving sections -> track shown.
    public var tracks: [String: String]
    /// Changes with each ICE restart: the ETag of WHIP.
    public var iceTag: String
    /// Tracks of the offer that are not published because the participant has reached its limit.
    public var tracksBeyondLimit: Int

    /// An answer.
    public init(sdp: String, tracks: [String: String], iceTag: String, tracksBeyondLimit: Int = 0) {
        self.sdp = sdp
        self.tracks = tracks
        self.iceTag = iceTag
        self.tracksBeyondLimit = tracksBeyondLimit
    }
}

/// What a WHEP viewer plays.
public enum FollowTarget: Sendable, Hashable {
    /// One participant, now or as soon as it publishes.
    case identity(String)
    /// The dominant speaker, without renegotiation.
    case dominantSpeaker
}

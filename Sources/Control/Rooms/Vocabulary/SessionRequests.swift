public import AccessTokens
public import MediaControl

/// Names one session: a participant's stay, across dropped sockets. Unguessable, so it also serves as resume secret and
/// as the last part of a WHIP resource URL.
public struct SessionID: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let rawValue: String

    /// The session called `rawValue`.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// What a joining client requests beside what its token says.
public struct JoinRequest: Sendable, Hashable {
    /// The token's claims; its room wins over `room`.
    public var claims: AccessClaims
    /// The asked room; nil: the configured default room; empty: a generated name.
    public var room: String?
    /// For a room that asks for one.
    public var password: String?
    /// Where the client is, as far as the edge knows; only for limits of how often somebody may try.
    public var address = ""
    /// The request that brought the token, as far as the edge knows.
    public var origin: JoinOrigin?
    /// Used where the token has none.
    public var name: String?
    public var metadata: String?
    public var profile = ParticipantProfile.full
    /// Every track of others is subscribed without asking.
    public var autoSubscribe = true
    /// Every data track of others likewise.
    public var subscribesToDataTracks = false
    /// A track that it asked for and may not receive, or not any more, is subscribed as soon as it may; other clients ask again.
    public var awaitsPermission = false
    /// No video of others is ever offered to it.
    public var audioOnly = false
    /// A publish-only member gets the roster and events of others only when it asks.
    public var wantsRoster: Bool?
    /// Messages of others; nil: unless it only publishes.
    public var wantsMessages: Bool?
    /// How its messages are written on its data channels.
    public var dataProtocol = DataProtocol.martlet
    /// How its client comes to new connections where it has lost all that it had.
    public var recovery = Recovery.inSession
    /// It can be told that it is in another room, with the connections that it has. Otherwise a move to any room takes these away.
    public var understandsMoves = true
    /// Its protocol has a request to unmute that the person decides on.
    public var understandsUnmuteRequests = true
    /// It is notified when the first connection of a participant comes up.
    public var wantsConnections = false
    /// Speaker lists; dominant speaker changes come with the roster.
    public var wantsSpeakers = false
    /// The client's own id for the connection on which subscriptions shall be put; nil: the server opens "sub".
    public var receivingConnection: String?
    /// What the client calls itself; nil: nothing is known of it.
    public var client: String?
    /// Who opens connections and makes offers for what the client receives.
    public var offering = Offering.server
    /// How the media streams of what the client receives are called.
    public var streamNames = StreamNames.publisher
    /// Beside those of the token, where the token permits changing them.
    public var attributes: [String: String] = [:]
    /// What its client says about itself.
    public var clientTraits = ClientTraits()
    /// Its media is encrypted end to end.
    public var encrypts = false
    /// Its preferences for its bandwidth; they make the room's and the token's limits only tighter.
    public var bandwidth = BandwidthProfile()

    /// A join with `claims` into `room`.
    public init(claims: AccessClaims, room: String? = nil) {
        self.claims = claims
        self.room = room
    }
}

/// How a client comes to new connections where the server has ended all that it had.
public enum Recovery: Sendable, Hashable {
    /// It makes them in the same session.
    case inSession
    /// It joins again; the session goes on with that.
    case byJoining
}

/// Who makes the offers for what a client receives.
public enum Offering: Sendable, Hashable {
    /// The server, on whichever connection it is, once there is something to send.
    case server
    /// The server, on a connection of its own that it opens at once.
    case serverAtOnce
    /// The client only: it is told of sections that are missing (``RoomEvent/sectionsNeeded(connection:audio:video:)``) and offers them.
    case client
}

/// How the media streams (RFC 8830) of what a client receives are called.
public enum StreamNames: Sendable, Hashable {
    /// The publisher's sid; screens have a stream of their own.
    case publisher
    /// `PA_…|TR_…`: one a track, so that a client whose browser renames tracks knows which one it is.
    case publisherAndTrack
}

/// What a session asks for that needs no description exchange. Participants and tracks are named by sid.
public enum SessionRequest: Sendable, Hashable {
    /// Tells what a track is, before or after its offer.
    case announce(TrackAnnouncement)
    /// Mutes one's own track (a moderator: anybody's; unmuting others is refused).
    case setMuted(track: String, Bool)
    case unpublish(track: String)
    case subscribe(track: String)
    case unsubscribe(track: String)
    /// Turns automatic subscription on or off for tracks to come.
    case setAutoSubscribe(Bool)
    case setPaused(track: String, Bool)
    case setPreference(track: String, LayerPreference)
    /// All that a viewer says about one track; what is not named goes back to its standard.
    case setView(track: String, TrackView)
    /// The same, for the subscription to come where the track is not received yet.
    case setViewInAdvance(track: String, TrackView)
    /// All that a participant says about its bandwidth; what is not named goes back to its standard.
    case setBandwidth(BandwidthProfile)
    /// No video at all while set.
    case pauseAllVideo(Bool)
    /// No video from now on (true), or upgrade by renegotiation.
    case setAudioOnly(Bool)
    /// nil leaves a field as it is.
    case setMetadata(name: String?, metadata: String?)
    /// Named texts; an empty one removes the name, others stay as they are.
    case setAttributes([String: String])
    /// To one other member, named by sid or identity.
    case relay(to: String, payload: String)
    case requestKeyframe(track: String)
    /// Who may receive one's own tracks; nil: everybody.
    case setAudience(Audience?)
    /// Moderators only.
    case remove(participant: String)
    /// Asks a publisher to unmute a track; it may or may not do so.
    case requestUnmute(track: String)
    /// Lets somebody in who waits, or turns it away.
    case letIn(identity: String)
    case turnAway(identity: String)
    /// Roster and others' events for a publish-only member that asks late.
    case requestRoster
    case wantSpeakers(Bool)
    /// How videos that the session receives are played.
    case report([PlaybackReport])
    /// To everybody else, or to those that it names.
    case send(RoomMessage)
    case dataTrack(DataTrackRequest)
}

/// What a publisher says about a track. What it does not name stays as it is, or has its standard before anything was said.
public struct TrackAnnouncement: Sendable, Hashable {
    /// The msid track id, or the mid.
    public var clientTrackID: String
    /// It is about the track with this sid, published or announced, also where another one has the same id; nil: about the one with that id.
    public var sid: String?
    public var source: TrackSource
    public var name: String?
    public var muted: Bool?
    public var width: Int?
    public var height: Int?
    /// What matters in the video when not everything can be sent; by its source where nothing is said.
    public var hint: ContentHint?
    /// How much it matters to its viewers, as far as they do not say otherwise.
    public var priority: TrackPriority?
    /// What its kind is, where the client may offer it under another id than the announced one (Firefox renames tracks): then the oldest announcement of the kind
    /// is meant. nil: by the id only.
    public var kind: MediaKind?
    /// What subscribers' clients are to know; nil: as before.
    public var details: TrackDetails?
    /// In which codec it is to be sent, and in which other one its publisher can send it beside, for subscribers that cannot play the first; empty: as the
    /// offer prefers.
    public var codecs: [Codec] = []
    /// The id under which it comes in that other codec, where it is known already; nil: that is announced by itself (`backupOf`).
    public var backupTrackID: String?
    /// Whether it is sent in both then.
    public var backupCodecPolicy = BackupCodecPolicy.simulcast
    /// It is the encoding of the track with this sid in its backup codec; nil: a track of its own.
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

/// What a viewer says about one track that it receives.
public struct TrackView: Sendable, Hashable {
    public var preference = LayerPreference.best
    public var display = DisplayPreference()
    public var isPaused = false

    /// The standard: all that is sent.
    public init() {}
}

/// What a client sees first.
public struct SessionSnapshot: Sendable, Hashable {
    public var room: RoomInfo
    /// Oneself.
    public var participant: ParticipantInfo
    /// Everybody else who may be known; empty without roster.
    public var others: [ParticipantInfo]
    public var subscriptions: [SubscriptionInfo]
    /// Who waits to be let in, as far as one may do so.
    public var guests: [WaitingGuest] = []
    /// Data tracks that one receives.
    public var dataTracks: [ReceivedDataTrack] = []
    /// The server is about to end.
    public var drain: DrainNotice?
    /// After a move: its client goes on by joining this room.
    public var isAwaited = false
    /// sid of the dominant speaker.
    public var dominantSpeaker: String?
    /// The number of the last event that is already in here; deltas go on from it.
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
    /// mid of the client's publishing sections -> sid of the track made of it; and of receiving sections -> track shown.
    public var tracks: [String: String]
    /// Changes with each ICE restart: the ETag of WHIP.
    public var iceTag: String
    /// Tracks of the offer that are not published because the participant has as many as it may.
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
    /// Whoever dominates, without renegotiation.
    case dominantSpeaker
}

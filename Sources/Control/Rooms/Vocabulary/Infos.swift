public import MediaControl

/// A track as the roster shows it.
public struct TrackInfo: Sendable, Hashable {
    /// `TR_…`, unique in the process.
    public var sid: String
    public var participant: String
    public var identity: String
    public var name: String
    public var kind: MediaKind
    public var source: TrackSource
    /// The publisher muted it (or was muted); nothing is forwarded.
    public var muted = false
    /// No packets arrive although it is not muted: the publisher paused.
    public var silent = false
    /// What the publisher sends, once known.
    public var codec: Codec?
    /// The codec to be sent, as negotiated for its section: known before its first packet arrives.
    public var agreedCodec: Codec?
    /// The other codec in which its publisher can send it, for subscribers that cannot play the first.
    public var backupCodec: Codec?
    /// Whether the first codec is still sent beside the backup codec.
    public var backupCodecPolicy = BackupCodecPolicy.simulcast
    /// Size of the largest received layer, or as announced.
    public var width: Int?
    public var height: Int?
    /// More than one layer is sent.
    public var simulcast = false
    /// The publisher's `a=mid` and msid track id, by which its client identifies the track.
    public var mid: String
    public var clientTrackID: String?
    /// What the publisher announced about it.
    public var hint: ContentHint?
    public var priority = TrackPriority.standard
    /// What else its publisher announced, for subscribers' clients; the server uses it only in descriptions.
    public var details = TrackDetails()

    /// A track that has just been published.
    public init(
        sid: String, participant: String, identity: String, name: String, kind: MediaKind, source: TrackSource,
        mid: String, clientTrackID: String? = nil
    ) {
        self.sid = sid
        self.participant = participant
        self.identity = identity
        self.name = name
        self.kind = kind
        self.source = source
        self.mid = mid
        self.clientTrackID = clientTrackID
    }
}

/// What a publisher prefers to send when a subscriber cannot play the first codec of its track.
public enum BackupCodecPolicy: Sendable, Hashable {
    /// Both codecs; the second one to subscribers that cannot play the first.
    case simulcast
    /// Only the second one, to everybody who plays it.
    case regression
}

/// A participant as the roster shows it.
public struct ParticipantInfo: Sendable, Hashable {
    /// `PA_…`, one per join.
    public var sid: String
    public var identity: String
    public var name: String
    public var metadata: String
    public var profile: ParticipantProfile
    public var permissions: Permissions
    /// Milliseconds since 1970.
    public var joinedAt: Int64
    /// Published tracks in order of publication.
    public var tracks: [TrackInfo] = []
    /// Published data tracks in order of publication.
    public var dataTracks: [DataTrackInfo] = []
    /// It encrypts its media end to end, as its client states.
    public var encrypts = false
    /// The client's name for itself; for operators, not announced to others.
    public var client: String?
    /// Named texts, from its token and from its own changes.
    public var attributes: [String: String] = [:]
    /// The kind in its token, in the words of LiveKit's tokens.
    public var kind: String?
    /// What its client can do, as the client states.
    public var clientTraits = ClientTraits()
    /// Whether one of its connections ever came up since it joined; a connection that a move ended does not count. Announced only to those that want it
    /// (``JoinRequest/wantsConnections``).
    public var hasConnected = false
    /// Grows with each change of this participant.
    public var version: UInt32 = 1
    /// The quality of its network, 0 (lost) to 5 (excellent), as last measured; nil before the first time. Not part of the version.
    public var quality: Int?

    /// A participant that has just joined.
    public init(
        sid: String, identity: String, name: String, metadata: String, profile: ParticipantProfile,
        permissions: Permissions, joinedAt: Int64
    ) {
        self.sid = sid
        self.identity = identity
        self.name = name
        self.metadata = metadata
        self.profile = profile
        self.permissions = permissions
        self.joinedAt = joinedAt
    }

    /// What the member sends: one flag per resource, true if a track of that kind is live and unmuted.
    public var resources: ResourceFlags {
        var flags = ResourceFlags()
        for track in tracks where !track.muted {
            switch (track.kind, track.source) {
            case (_, .screen), (_, .screenAudio): flags.screen = true
            case (.audio, _): flags.audio = true
            case (.video, _): flags.video = true
            }
        }
        return flags
    }
}

/// `{audio, video, screen}` of one member.
public struct ResourceFlags: Sendable, Hashable {
    public var audio = false
    public var video = false
    public var screen = false

    /// Everything off.
    public init() {}
}

/// A room as lists and events show it.
public struct RoomInfo: Sendable, Hashable {
    /// `RM_…`, one for each life of the room.
    public var sid: String
    public var name: String
    public var metadata: String
    public var topology: RoomPolicy.Topology
    public var maxParticipants: Int?
    /// Who may join.
    public var lock = RoomLock.open
    /// Whether its policy lets members send messages.
    public var allowsMessages = true
    /// Members that others may know of.
    public var participants = 0
    public var publishers = 0
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// What is being recorded.
    public var recordings: [RecordingInfo] = []

    /// A new room.
    public init(
        sid: String, name: String, metadata: String, topology: RoomPolicy.Topology, maxParticipants: Int?,
        createdAt: Int64
    ) {
        self.sid = sid
        self.name = name
        self.metadata = metadata
        self.topology = topology
        self.maxParticipants = maxParticipants
        self.createdAt = createdAt
    }
}

/// Who may join a room.
public enum RoomLock: String, Sendable, Hashable, CaseIterable {
    /// Everybody with a token.
    case open
    /// Clients that know the password, and moderators.
    case password
    /// Moderators only.
    case closed
}

/// One track as one subscriber receives it.
public struct SubscriptionInfo: Sendable, Hashable {
    /// `SU_…`.
    public var sid: String
    /// The track shown; nil while a follow-mode section shows no participant.
    public var track: String?
    public var publisher: String?
    public var subscriber: String
    public var kind: MediaKind
    /// The connection and `a=mid` that it is on; nil until they were negotiated.
    public var connection: String?
    public var mid: String?
    public var paused: Bool
    public var preference: LayerPreference
    /// The subscriber's other preferences for it.
    public var display = DisplayPreference()
    public var state: State
    /// As its client reports them; nil if it has reported none.
    public var freezes: Freezes?

    /// The state of a subscription.
    public enum State: String, Sendable, Hashable {
        /// Waits for a connection, or for the answer to an offer.
        case pending
        /// Negotiated; packets may flow.
        case active
        /// The subscriber accepts none of the track's codecs.
        case noCommonCodec = "no_common_codec"
    }

    /// A subscription in `state`.
    public init(
        sid: String, track: String?, publisher: String?, subscriber: String, kind: MediaKind, connection: String?,
        mid: String?, paused: Bool, preference: LayerPreference, state: State
    ) {
        self.sid = sid
        self.track = track
        self.publisher = publisher
        self.subscriber = subscriber
        self.kind = kind
        self.connection = connection
        self.mid = mid
        self.paused = paused
        self.preference = preference
        self.state = state
    }
}

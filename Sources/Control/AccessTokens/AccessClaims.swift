/// The contents of a verified access token (DESIGN.md section 6).
public struct AccessClaims: Sendable, Hashable {
    /// `iss`: the API key that signed the token.
    public var apiKey: String
    /// `sub`: who joins; nil in tokens that are only for the control API.
    public var identity: String?
    /// `name`: the display name for others.
    public var name: String?
    /// `metadata`: opaque text that others receive.
    public var metadata: String?
    /// `attributes`: named texts that others receive.
    public var attributes: [String: String] = [:]
    /// `kind`: what the participant is (`agent`, `sip` …), in the words of LiveKit's tokens; nil: a person, as far as is known.
    public var kind: String?
    /// `exp`, in seconds since 1970.
    public var expiresAt: Int64
    /// `nbf`, in seconds since 1970.
    public var notBefore: Int64?
    /// `iat`, in seconds since 1970.
    public var issuedAt: Int64?
    /// `jti`: the token's own id, by which it can be revoked.
    public var tokenID: String?
    /// `video`: what the bearer may do.
    public var video: VideoGrant

    /// Claims of `apiKey` that end at `expiresAt`.
    public init(
        apiKey: String, identity: String? = nil, name: String? = nil, metadata: String? = nil, expiresAt: Int64,
        notBefore: Int64? = nil, issuedAt: Int64? = nil, tokenID: String? = nil, video: VideoGrant = VideoGrant()
    ) {
        self.apiKey = apiKey
        self.identity = identity
        self.name = name
        self.metadata = metadata
        self.expiresAt = expiresAt
        self.notBefore = notBefore
        self.issuedAt = issuedAt
        self.tokenID = tokenID
        self.video = video
    }
}

/// The usual room grants. Absent three-state permissions mean "allowed", absent flags mean "no".
public struct VideoGrant: Sendable, Hashable {
    /// The only room that the token is valid for; nil or empty: any.
    public var room: String?
    /// May join.
    public var roomJoin = false
    /// May create and delete rooms.
    public var roomCreate = false
    /// May list rooms.
    public var roomList = false
    /// May read and moderate `room` (every room if none is named).
    public var roomAdmin = false
    /// May publish tracks; nil means yes.
    public var canPublish: Bool?
    /// May receive tracks; nil means yes.
    public var canSubscribe: Bool?
    /// May send data; nil means the same as `canPublish`.
    public var canPublishData: Bool?
    /// May change its own name, metadata and attributes, if the protocol requires that grant.
    public var canUpdateOwnMetadata = false
    /// The sources that may be published; nil means any.
    public var canPublishSources: Set<GrantedSource>?
    /// Which tracks the bearer may receive, instead of the room's rules; nil: the room's rules apply. No rules: none.
    public var subscribeRules: [GrantedSubscribeRule]?
    /// The preset whose rules apply to a room that the bearer's join creates; nil: the server's defaults.
    public var preset: String?
    /// The only other room to which a moderator of `room` may move participants.
    public var destinationRoom: String?
    /// Others are not notified of this participant.
    public var hidden = false
    /// A recorder; also hidden.
    public var recorder = false
    /// May begin and end recordings through LiveKit's API.
    public var roomRecord = false
    /// The maximum number of videos sent to the bearer at a time; nil: the room's limit applies.
    public var maxVideoSubscriptions: Int?
    /// Cap on all video sent to the bearer, in bits per second; nil: the room's limit applies.
    public var maxDownlinkBitrate: Int64?
    /// Cap on all video that the bearer sends, in bits per second; nil: the room's limit applies.
    public var maxUplinkBitrate: Int64?

    /// A grant that permits nothing.
    public init() {}

    /// A grant to join `room` (nil: any room).
    public static func join(_ room: String?) -> Self {
        var grant = Self()
        grant.roomJoin = true
        grant.room = room
        return grant
    }
}

/// A source named in `canPublishSources`.
public enum GrantedSource: String, Sendable, Hashable, CaseIterable {
    case camera
    case microphone
    case screenShare = "screen_share"
    case screenShareAudio = "screen_share_audio"
}

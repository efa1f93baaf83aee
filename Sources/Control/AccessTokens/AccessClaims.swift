/// What a verified access token says (DESIGN.md section 6).
public struct AccessClaims: Sendable, Hashable {
    /// `iss`: the API key that signed the token.
    public var apiKey: String
    /// `sub`: who joins; nil in tokens that are only for the control API.
    public var identity: String?
    /// `name`: what others are shown.
    public var name: String?
    /// `metadata`: opaque text that others are told.
    public var metadata: String?
    /// `attributes`: named texts that others are told.
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

/// The field's common room grants. Absent three-state permissions mean "allowed", absent flags mean "no".
public struct VideoGrant: Sendable, Hashable {
    /// The only room that the token is good for; nil or empty: any.
    public var room: String?
    /// May join.
    public var roomJoin = false
    /// May create and delete rooms.
    public var roomCreate = false
    /// May list rooms.
    public var roomList = false
    /// May read and moderate `room` (every room when there is none).
    public var roomAdmin = false
    /// May publish tracks; nil means yes.
    public var canPublish: Bool?
    /// May receive tracks; nil means yes.
    public var canSubscribe: Bool?
    /// May send data; nil means the same as `canPublish`.
    public var canPublishData: Bool?
    /// May change its own name, metadata and attributes, where the protocol asks for that grant.
    public var canUpdateOwnMetadata = false
    /// The sources that may be published; nil means any.
    public var canPublishSources: Set<GrantedSource>?
    /// Which tracks the bearer may receive, in place of the room's rules; nil: as the room says. No rules: none.
    public var subscribeRules: [GrantedSubscribeRule]?
    /// The preset whose rules a room has that the bearer's join creates; nil: the server's defaults.
    public var preset: String?
    /// The only other room to which a moderator of `room` may move participants.
    public var destinationRoom: String?
    /// Others are not told about this participant.
    public var hidden = false
    /// A recorder; hidden too.
    public var recorder = false
    /// May begin and end recordings through LiveKit's API.
    public var roomRecord = false
    /// Most videos that the bearer is sent at a time; nil: as the room says.
    public var maxVideoSubscriptions: Int?
    /// Cap on all video that the bearer is sent, in bits a second; nil: as the room says.
    public var maxDownlinkBitrate: Int64?
    /// Cap on all video that the bearer sends, in bits a second; nil: as the room says.
    public var maxUplinkBitrate: Int64?

    /// A grant of nothing.
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

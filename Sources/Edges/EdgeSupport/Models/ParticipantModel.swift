public import MediaControl
public import Rooms

/// A participant as JSON shows it.
public struct ParticipantModel: Codable, Sendable, Hashable {
    /// `PA_…`, one a join.
    public var sid: String
    /// Who it is.
    public var identity: String
    /// What others are shown.
    public var name: String
    /// Opaque text.
    public var metadata: String
    /// `full`, `publishOnly` or `viewer`.
    public var profile: String
    /// What it may do.
    public var permissions: PermissionsModel
    /// true: it encrypts its media end to end, by its own account.
    public var encrypted: Bool?
    /// Milliseconds since 1970.
    public var joinedAt: Int64
    /// What is live and not muted.
    public var resources: ResourcesModel
    /// In order of publication.
    public var tracks: [TrackModel]
    /// Grows with each change.
    public var version: UInt32
    /// Its network quality, 0 to 5; nil before it was measured.
    public var quality: Int?

    /// The model of `info`.
    public init(_ info: ParticipantInfo) {
        sid = info.sid
        identity = info.identity
        name = info.name
        metadata = info.metadata
        profile = info.profile.rawValue
        permissions = PermissionsModel(info.permissions)
        encrypted = info.encrypts ? true : nil
        joinedAt = info.joinedAt
        resources = ResourcesModel(info.resources)
        tracks = info.tracks.map { TrackModel($0) }
        version = info.version
        quality = info.quality
    }
}

/// What a participant may do, as JSON shows it.
public struct PermissionsModel: Codable, Sendable, Hashable {
    /// May publish tracks.
    public var canPublish: Bool
    /// May receive tracks.
    public var canSubscribe: Bool
    /// May send data.
    public var canPublishData: Bool
    /// The only sources that may be published; nil: any.
    public var publishSources: [TrackSource]?
    /// Others are not notified of it.
    public var hidden: Bool
    /// Records.
    public var recorder: Bool
    /// May moderate.
    public var roomAdmin: Bool

    /// The model of `permissions`.
    public init(_ permissions: Permissions) {
        canPublish = permissions.canPublish
        canSubscribe = permissions.canSubscribe
        canPublishData = permissions.canPublishData
        publishSources = permissions.publishSources?.sorted { $0.rawValue < $1.rawValue }
        hidden = permissions.hidden
        recorder = permissions.recorder
        roomAdmin = permissions.roomAdmin
    }
}

/// What is live and not muted, as JSON shows it.
public struct ResourcesModel: Codable, Sendable, Hashable {
    /// A microphone.
    public var audio: Bool
    /// A camera.
    public var video: Bool
    /// A screen.
    public var screen: Bool

    /// The model of `flags`.
    public init(_ flags: ResourceFlags) {
        audio = flags.audio
        video = flags.video
        screen = flags.screen
    }
}

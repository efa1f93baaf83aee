public import AccessTokens
public import MediaControl

/// What a participant may do; comes from its token and may be changed by an operator.
public struct Permissions: Sendable, Hashable {
    public var canPublish = true
    public var canSubscribe = true
    public var canPublishData = true
    /// May change its own name, metadata and attributes, if the protocol requires that permission.
    public var canUpdateMetadata = false
    /// Sources that may be published; nil means any.
    public var publishSources: Set<TrackSource>?
    /// Others are not notified of this participant.
    public var hidden = false
    public var recorder = false
    /// May moderate: mute and remove others, change the room.
    public var roomAdmin = false

    /// Everything except moderation.
    public init() {}

    /// What `grant` permits.
    public init(_ grant: VideoGrant) {
        canPublish = grant.canPublish ?? true
        canSubscribe = grant.canSubscribe ?? true
        canPublishData = grant.canPublishData ?? canPublish
        canUpdateMetadata = grant.canUpdateOwnMetadata
        publishSources = grant.canPublishSources.map { granted in
            var sources = Set<TrackSource>()
            for source in granted {
                switch source {
                case .camera: sources.insert(.camera)
                case .microphone: sources.insert(.microphone)
                case .screenShare: sources.insert(.screen)
                case .screenShareAudio: sources.insert(.screenAudio)
                }
            }
            return sources
        }
        hidden = grant.hidden || grant.recorder
        recorder = grant.recorder
        roomAdmin = grant.roomAdmin
    }

    /// Whether a track from `source` may be published. An unknown source is allowed only if every source is.
    public func mayPublish(_ source: TrackSource) -> Bool {
        canPublish && (publishSources?.contains(source) ?? true)
    }
}

extension TrackSource {
    /// Whether a track of `kind` can come from this source: a grant for one kind does not permit the other under another name.
    func fits(_ kind: MediaKind) -> Bool {
        switch self {
        case .microphone, .screenAudio: kind == .audio
        case .camera, .screen: kind == .video
        case .unknown: true
        }
    }
}

/// How a participant takes part.
public enum ParticipantProfile: String, Sendable, Hashable, CaseIterable {
    /// Publishes and receives.
    case full
    /// Publishes, and is sent only what its own stream needs: no roster, no others' events, no media.
    case publishOnly
    /// Receives only (WHEP).
    case viewer
}

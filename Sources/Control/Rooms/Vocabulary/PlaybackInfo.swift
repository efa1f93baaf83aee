public import MediaControl
public import Primitives

/// One track of a file, with what a room needs to decide about it.
public struct PlaybackFormat: Sendable, Hashable {
    public var codec: Codec
    /// H.264 only: six hexadecimal digits as in SDP.
    public var profileLevelID: String?
    /// VP9 and AV1 only.
    public var profile: Int?
    /// In pixels; nil for audio.
    public var width: Int?
    public var height: Int?

    /// A track of `codec`.
    public init(
        codec: Codec, profileLevelID: String? = nil, profile: Int? = nil, width: Int? = nil, height: Int? = nil
    ) {
        self.codec = codec
        self.profileLevelID = profileLevelID
        self.profile = profile
        self.width = width
        self.height = height
    }
}

/// A file to be played into a room: its participant and its contents.
public struct PlaybackRequest: Sendable, Hashable {
    /// The identity of the file's participant.
    public var identity: String
    /// The display name; empty for none.
    public var name: String
    /// Whether it appears as a camera with a microphone, or as a screen with its audio.
    public var isScreen: Bool
    /// Its tracks: at most one of each kind.
    public var formats: [PlaybackFormat]

    /// A playback as `identity`.
    public init(identity: String, name: String = "", isScreen: Bool = false, formats: [PlaybackFormat]) {
        self.identity = identity
        self.name = name
        self.isScreen = isScreen
        self.formats = formats
    }
}

/// A playback in a room, with what the player must know.
public struct PlaybackInfo: Sendable, Hashable {
    /// One track.
    public struct Track: Sendable, Hashable {
        /// `TR_…`.
        public var sid: String
        public var kind: MediaKind
        public var codec: Codec
        /// The stream's SSRC, which its packets carry.
        public var ssrc: UInt32
        /// The payload type, which its packets carry.
        public var payloadType: UInt8
    }

    /// `PB_…`.
    public var sid: String
    /// The sid of its participant.
    public var participant: String
    public var identity: String
    /// The peer that its packets belong to.
    public var peer: PeerID
    /// In the order of the request.
    public var tracks: [Track]
    /// Milliseconds since 1970.
    public var startedAt: Int64
}

/// A room's decision that the player must know.
public enum PlaybackEffect: Sendable, Hashable {
    /// Its participant is no longer in the room.
    case ended(playback: String)
}

/// Why a playback ended by itself or through the API. `rawValue` is the stable word.
public enum PlaybackEnd: String, Sendable, Hashable, CaseIterable {
    /// The file's end was reached.
    case finished
    /// By the API.
    case stopped
    /// The file could no longer be read, or is damaged.
    case failed
}

/// An event of a playback, for the event log.
public struct PlaybackEvent: Sendable, Hashable {
    /// The kinds.
    public enum Kind: Sendable, Hashable { case started, ended }

    public var kind: Kind
    /// `PB_…`.
    public var playback: String
    /// The sid of its participant.
    public var participant: String
    public var identity: String
    /// A stable word: a `PlaybackEnd`, or why its participant left.
    public var reason: String?

    /// An event of a playback.
    init(_ kind: Kind, _ info: PlaybackInfo, reason: String? = nil) {
        self.kind = kind
        playback = info.sid
        participant = info.participant
        identity = info.identity
        self.reason = reason
    }
}

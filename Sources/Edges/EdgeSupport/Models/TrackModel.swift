public import MediaControl
public import Rooms

/// A track as JSON shows it.
public struct TrackModel: Codable, Sendable, Hashable {
    /// `TR_…`.
    public var sid: String
    /// The publisher's sid.
    public var participant: String
    /// The publisher's identity.
    public var identity: String
    /// What the publisher calls it.
    public var name: String
    /// Audio or video.
    public var kind: MediaKind
    /// Where the media comes from.
    public var source: TrackSource
    /// Nothing is forwarded.
    public var muted: Bool
    /// No packets arrive although it is not muted.
    public var silent: Bool
    /// The codec that the publisher sends, once known.
    public var codec: String?
    /// Of the largest layer, once known.
    public var width: Int?
    /// Of the largest layer, once known.
    public var height: Int?
    /// More than one layer is sent.
    public var simulcast: Bool
    /// `a=mid` on the publisher's connection.
    public var mid: String
    /// The publisher's own id (msid).
    public var clientTrackId: String?
    /// `motion`, `detail` or `text`, if the publisher announced it.
    public var hint: ContentHint?
    /// `low` or `high`, if it is not the default.
    public var priority: String?

    /// The model of `info`.
    public init(_ info: TrackInfo) {
        sid = info.sid
        participant = info.participant
        identity = info.identity
        name = info.name
        kind = info.kind
        source = info.source
        muted = info.muted
        silent = info.silent
        codec = info.codec?.word
        width = info.width
        height = info.height
        simulcast = info.simulcast
        mid = info.mid
        clientTrackId = info.clientTrackID
        hint = info.hint
        priority = info.priority == .standard ? nil : info.priority.word
    }
}

extension Codec {
    /// The stable word in JSON and metrics.
    public var word: String {
        switch self {
        case .opus: "opus"
        case .red: "red"
        case .vp8: "vp8"
        case .vp9: "vp9"
        case .h264: "h264"
        case .av1: "av1"
        case .otherAudio: "otherAudio"
        }
    }

    /// The codec that `word` names.
    public init?(word: String) {
        guard let codec = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = codec
    }
}

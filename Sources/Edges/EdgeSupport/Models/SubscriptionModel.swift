public import MediaControl
public import Rooms

/// A subscription as JSON shows it.
public struct SubscriptionModel: Codable, Sendable, Hashable {
    /// `SU_…`.
    public var sid: String
    /// The track shown; nil while there is none.
    public var track: String?
    /// The sid of the track's publisher.
    public var publisher: String?
    /// The sid of who receives.
    public var subscriber: String
    /// Audio or video.
    public var kind: MediaKind
    /// The connection it comes on, once negotiated.
    public var connection: String?
    /// `a=mid` on that connection.
    public var mid: String?
    /// Nothing is forwarded because the subscriber paused it.
    public var paused: Bool
    /// Which layer is wanted.
    public var preference: PreferenceModel
    /// The frame rate that is enough; nil: all frames.
    public var framesPerSecond: Double?
    /// `low`, `standard` or `high`; nil: the publisher's.
    public var priority: String?
    /// Before everything else.
    public var pinned: Bool
    /// Not shown at present.
    public var hidden: Bool
    /// `pending`, `active` or `no_common_codec`.
    public var state: String

    /// The model of `info`.
    public init(_ info: SubscriptionInfo) {
        sid = info.sid
        track = info.track
        publisher = info.publisher
        subscriber = info.subscriber
        kind = info.kind
        connection = info.connection
        mid = info.mid
        paused = info.paused
        preference = PreferenceModel(info.preference)
        framesPerSecond = info.display.framesPerSecond
        priority = info.display.priority?.word
        pinned = info.display.isPinned
        hidden = info.display.isHidden
        state = info.state.rawValue
    }
}

/// The preferred layer: at most one member is set; none means the best.
public struct PreferenceModel: Codable, Sendable, Hashable {
    /// By `a=rid`.
    public var rid: String?
    /// The smallest layer that is at least this tall, in pixels.
    public var height: Int?
    /// By quality, 0 is the lowest.
    public var spatial: Int?

    /// The model of `preference`.
    public init(_ preference: LayerPreference) {
        switch preference {
        case .best: break
        case .rid(let rid): self.rid = rid
        case .height(let height): self.height = height
        case .spatial(let spatial): self.spatial = spatial
        }
    }

    /// The preference; nil if it contradicts itself or a number is out of range.
    public var value: LayerPreference? {
        switch (rid, height, spatial) {
        case (nil, nil, nil): .best
        case (let rid?, nil, nil) where (1...16).contains(rid.utf8.count): .rid(rid)
        case (nil, let height?, nil) where (0...16_384).contains(height): .height(height)
        case (nil, nil, let spatial?) where (0...7).contains(spatial): .spatial(spatial)
        default: nil
        }
    }
}

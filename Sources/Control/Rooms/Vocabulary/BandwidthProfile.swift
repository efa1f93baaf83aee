import AccessTokens
public import MediaControl
public import Primitives

/// How a participant's bandwidth is bounded and shared out, as a room, a token or the participant itself says it; nil: says nothing.
public struct BandwidthProfile: Sendable, Hashable {
    /// How what is left after everybody has something is shared.
    public var mode: AllocationMode?
    /// Most videos that it is sent at a time: pinned ones, screens and whoever dominates first.
    public var maxVideoSubscriptions: Int?
    /// Cap on all video that it is sent.
    public var maxDownlinkBitrate: Bitrate?
    /// Cap on all video that it sends.
    public var maxUplinkBitrate: Bitrate?
    /// What happens to a video whose lowest layer does not fit.
    public var shortage: ShortagePolicy?

    /// Says nothing.
    public init() {}

    /// The limits of a token.
    init(_ grant: VideoGrant) {
        maxVideoSubscriptions = grant.maxVideoSubscriptions
        maxDownlinkBitrate = grant.maxDownlinkBitrate.map { .bitsPerSecond($0) }
        maxUplinkBitrate = grant.maxUplinkBitrate.map { .bitsPerSecond($0) }
    }
}

/// Who set a limit.
public enum LimitSource: String, Sendable, Hashable {
    case room, token, participant
}

/// A limit, and who set it.
public struct BandwidthLimit<Value: Comparable & Hashable & Sendable>: Sendable, Hashable {
    public var value: Value
    /// The tightest of them; the room of equals, then the token.
    public var source: LimitSource

    /// The tightest of three; nil where nobody set one.
    init?(room: Value?, token: Value?, own: Value?) {
        let named = [(room, LimitSource.room), (token, .token), (own, .participant)]
        let set = named.compactMap { value, source in value.map { ($0, source) } }
        guard let tightest = set.min(by: { $0.0 < $1.0 }) else { return nil }
        (value, source) = tightest
    }
}

/// What holds for one participant: the tightest of all limits, and its own choice of mode where it made one.
public struct BandwidthSettings: Sendable, Hashable {
    public var mode: AllocationMode
    public var shortage: ShortagePolicy
    public var maxVideoSubscriptions: BandwidthLimit<Int>?
    public var maxDownlinkBitrate: BandwidthLimit<Bitrate>?
    public var maxUplinkBitrate: BandwidthLimit<Bitrate>?

    /// Limits only grow tighter; mode and shortage concern nobody else, so the participant's choice wins.
    init(room: BandwidthProfile, token: BandwidthProfile, own: BandwidthProfile) {
        let standard = DownlinkPolicy()
        mode = own.mode ?? room.mode ?? standard.mode
        shortage = own.shortage ?? room.shortage ?? standard.shortage
        maxVideoSubscriptions = BandwidthLimit(
            room: room.maxVideoSubscriptions, token: token.maxVideoSubscriptions, own: own.maxVideoSubscriptions)
        maxDownlinkBitrate = BandwidthLimit(
            room: room.maxDownlinkBitrate, token: token.maxDownlinkBitrate, own: own.maxDownlinkBitrate)
        maxUplinkBitrate = BandwidthLimit(
            room: room.maxUplinkBitrate, token: token.maxUplinkBitrate, own: own.maxUplinkBitrate)
    }

    /// The same for the media plane.
    var downlinkPolicy: DownlinkPolicy {
        var policy = DownlinkPolicy()
        policy.mode = mode
        policy.shortage = shortage
        policy.maximumVideos = maxVideoSubscriptions?.value
        policy.maximumBitrate = maxDownlinkBitrate?.value
        return policy
    }
}

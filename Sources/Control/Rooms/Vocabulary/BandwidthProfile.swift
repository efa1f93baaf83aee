import AccessTokens
public import MediaControl
public import Primitives

/// How a participant's bandwidth is limited and allocated, as a room, a token or the participant specifies; nil: not specified.
public struct BandwidthProfile: Sendable, Hashable {
    /// How the bandwidth that is left, after every video has its minimum, is allocated.
    public var mode: AllocationMode?
    /// The maximum number of videos sent to it at a time: pinned ones, screens and the dominant speaker come first.
    public var maxVideoSubscriptions: Int?
    /// Cap on all video sent to it.
    public var maxDownlinkBitrate: Bitrate?
    /// Cap on all video that it sends.
    public var maxUplinkBitrate: Bitrate?
    /// What happens to a video whose lowest layer does not fit.
    public var shortage: ShortagePolicy?

    /// Nothing specified.
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
    /// The tightest limit; of equal ones the room's, then the token's.
    public var source: LimitSource

    /// The tightest of three; nil if nobody set one.
    init?(room: Value?, token: Value?, own: Value?) {
        let named = [(room, LimitSource.room), (token, .token), (own, .participant)]
        let set = named.compactMap { value, source in value.map { ($0, source) } }
        guard let tightest = set.min(by: { $0.0 < $1.0 }) else { return nil }
        (value, source) = tightest
    }
}

/// What applies to one participant: the tightest of all limits, and its own choice of mode if it made one.
public struct BandwidthSettings: Sendable, Hashable {
    public var mode: AllocationMode
    public var shortage: ShortagePolicy
    public var maxVideoSubscriptions: BandwidthLimit<Int>?
    public var maxDownlinkBitrate: BandwidthLimit<Bitrate>?
    public var maxUplinkBitrate: BandwidthLimit<Bitrate>?

    /// Limits only get tighter. Mode and shortage affect nobody else, so the participant's choice wins.
    init(room: BandwidthProfile, token: BandwidthProfile, own: BandwidthProfile) {
        let defaults = DownlinkPolicy()
        mode = own.mode ?? room.mode ?? defaults.mode
        shortage = own.shortage ?? room.shortage ?? defaults.shortage
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

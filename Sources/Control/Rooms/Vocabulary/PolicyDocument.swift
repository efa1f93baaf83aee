public import MediaControl
public import Primitives

/// What one layer says about a room's rules; nil: says nothing.
///
/// Layers lie above each other: the server's defaults, a preset, the room's own document. The topmost that says something about a rule decides it.
public struct PolicyDocument: Sendable, Hashable {
    public var topology: RoomPolicy.Topology?
    public var maxParticipants: Int?
    public var countsHidden: Bool?
    public var countsPublishOnly: Bool?
    public var maxPublishers: Int?
    public var bandwidth = BandwidthProfile()
    public var audioCodecs: [Codec]?
    public var videoCodecs: [Codec]?
    public var audioOnly: Bool?
    public var maxVideoBitrate: Bitrate?
    public var publishSources: Set<TrackSource>?
    public var allowsSimulcast: Bool?
    public var lockRight: RoomPolicy.LockRight?
    public var duplicateIdentity: RoomPolicy.DuplicateIdentity?
    public var maxDuration: TimeInterval?
    public var maxStay: TimeInterval?
    public var endsStayWithToken: Bool?
    public var emptyTimeout: TimeInterval?
    public var departureTimeout: TimeInterval?

    /// Says nothing.
    public init() {}

    /// Says all that is in force.
    public init(_ policy: RoomPolicy) {
        topology = policy.topology
        maxParticipants = policy.maxParticipants
        countsHidden = policy.countsHidden
        countsPublishOnly = policy.countsPublishOnly
        maxPublishers = policy.maxPublishers
        bandwidth = policy.bandwidth
        audioCodecs = policy.audioCodecs
        videoCodecs = policy.videoCodecs
        audioOnly = policy.audioOnly
        maxVideoBitrate = policy.maxVideoBitrate
        publishSources = policy.publishSources
        allowsSimulcast = policy.allowsSimulcast
        lockRight = policy.lockRight
        duplicateIdentity = policy.duplicateIdentity
        maxDuration = policy.maxDuration
        maxStay = policy.maxStay
        endsStayWithToken = policy.endsStayWithToken
        emptyTimeout = policy.emptyTimeout
        departureTimeout = policy.departureTimeout
    }

    /// `base` with what this layer says in its place.
    public func applied(to base: RoomPolicy) -> RoomPolicy {
        var policy = base
        policy.topology = topology ?? base.topology
        policy.maxParticipants = maxParticipants ?? base.maxParticipants
        policy.countsHidden = countsHidden ?? base.countsHidden
        policy.countsPublishOnly = countsPublishOnly ?? base.countsPublishOnly
        policy.maxPublishers = maxPublishers ?? base.maxPublishers
        policy.bandwidth = bandwidth.applied(to: base.bandwidth)
        policy.audioCodecs = audioCodecs ?? base.audioCodecs
        policy.videoCodecs = videoCodecs ?? base.videoCodecs
        policy.audioOnly = audioOnly ?? base.audioOnly
        policy.maxVideoBitrate = maxVideoBitrate ?? base.maxVideoBitrate
        policy.publishSources = publishSources ?? base.publishSources
        policy.allowsSimulcast = allowsSimulcast ?? base.allowsSimulcast
        policy.lockRight = lockRight ?? base.lockRight
        policy.duplicateIdentity = duplicateIdentity ?? base.duplicateIdentity
        policy.maxDuration = maxDuration ?? base.maxDuration
        policy.maxStay = maxStay ?? base.maxStay
        policy.endsStayWithToken = endsStayWithToken ?? base.endsStayWithToken
        policy.emptyTimeout = emptyTimeout ?? base.emptyTimeout
        policy.departureTimeout = departureTimeout ?? base.departureTimeout
        return policy
    }
}

extension BandwidthProfile {
    fileprivate func applied(to base: BandwidthProfile) -> BandwidthProfile {
        var profile = base
        profile.mode = mode ?? base.mode
        profile.maxVideoSubscriptions = maxVideoSubscriptions ?? base.maxVideoSubscriptions
        profile.maxDownlinkBitrate = maxDownlinkBitrate ?? base.maxDownlinkBitrate
        profile.maxUplinkBitrate = maxUplinkBitrate ?? base.maxUplinkBitrate
        profile.shortage = shortage ?? base.shortage
        return profile
    }
}

internal import MediaControl
public import PayloadFormats
public import Primitives

/// The position of a layer's last keyframe in its history.
public struct KeyframePosition: Sendable, Hashable {
    /// Extended sequence number of its first packet, parameter sets of the same timestamp included.
    public var firstSequence: Int64
    /// Its extended timestamp.
    public var timestamp: Int64
    /// When its first packet arrived.
    public var arrival: MonotonicTime
}

/// One layer (simulcast encoding, or the only stream) of a published track: everything about one media SSRC and the
/// retransmissions that belong to it. Flat state; the track owns it and lends pointers.
public struct ReceiveLayer: ~Copyable {
    /// Position in the description's encodings; constant for the track's lifetime.
    public let index: Int
    /// `a=rid` value, where the encoding has one.
    public internal(set) var rid: String?
    /// The media SSRC; nil until the SDP or a packet reveals it.
    public internal(set) var ssrc: UInt32?
    /// The SSRC of retransmissions.
    public internal(set) var rtxSSRC: UInt32?
    /// The SSRC of retransmissions for the previous source, until another replaces it: its packets may cross the change.
    var formerRTX: UInt32?
    /// The layer's packets.
    public internal(set) var history: PacketHistory
    /// The last keyframe; nil before the first.
    public internal(set) var lastKeyframe: KeyframePosition?
    /// The publisher's clock by its last sender report.
    public internal(set) var clock: SenderClock?
    /// Frame size by the last keyframe; 0 while unknown.
    public internal(set) var width = 0
    public internal(set) var height = 0
    /// Spatial layers inside the stream by its last keyframe, and the most that it ever had.
    public internal(set) var spatialLayers = 1
    public internal(set) var mostSpatialLayers = 1
    /// H.264 parameter sets in force.
    public internal(set) var parameterSets = ParameterSetCache()
    /// Reads the layer's dependency descriptors (AV1 and SVC); holds the template structure in force.
    public internal(set) var descriptors = DependencyDescriptorReader()
    /// Packets from here on arrived when the structure and the active targets in `descriptors` were in force.
    var targetsSince: Int64 = .min
    /// When the last media packet (no padding, no retransmission) arrived; `.zero` before the first.
    public internal(set) var lastMedia = MonotonicTime.zero

    var ridText: ShortText?
    var sequences = SequenceTracker()
    var counters = ReceptionCounters()
    var nacks = NackGenerator()
    var keyframes: KeyframeRequester
    var rates = LayerRates()
    var frames = FrameMeter()
    /// Extended timestamp of the newest packet.
    var newestTimestamp: Int64 = 0
    var hasTimestamp = false
    /// Frames begun since the track was added.
    var frameCount: UInt64 = 0
    /// The timestamp of the newest frame counted.
    var countedFrame: Int64 = .min
    /// The sender sent an RTCP BYE and nothing since.
    var hasEnded = false
    /// The next stored packet follows a part of the stream that was not stored (mute).
    var needsDiscontinuity = false
    /// RED whose blocks are not Opus has arrived, so it is encrypted end to end, and any block that looks like RED does so by chance.
    var carriesOpaqueRED = false
    var needsTimeline = false
    /// The newest packet that a mute dropped: no subscription can start with a keyframe that reaches back to it.
    var droppedUpTo: Int64 = .min
    var firCommand: UInt8 = 0
    /// Missing packets were given up; request one keyframe.
    var lostForGood = false
    /// Packets received at the last report.
    var reportedPackets: Int64 = 0
    var totals = LayerTotals()

    init(index: Int, encoding: EncodingDescription, kind: MediaKind, isScreen: Bool) {
        self.index = index
        rid = encoding.rid
        ridText = encoding.rid.flatMap { ShortText($0) }
        ssrc = encoding.ssrc
        rtxSSRC = encoding.rtxSSRC
        history = PacketHistory(kind == .audio ? .audio : .video)
        keyframes = KeyframeRequester(isScreen: isScreen)
    }

    /// Highest extended sequence number received, padding included; nil before the first packet.
    public var highestSequence: Int64? { sequences.hasStarted ? sequences.highest : nil }

    /// Interarrival jitter in timestamp units.
    public var jitter: UInt32 { counters.jitter }

    /// Bits per second over the last second.
    public func bitrate(at now: MonotonicTime) -> Bitrate { rates.bitrate(at: now) }

    /// Frames per second over the last two seconds, or from the interval of the last frames when they are few.
    public func framesPerSecond(at now: MonotonicTime) -> Double { frames.framesPerSecond(at: now) }

    /// The last keyframe's first packet, if it is at most `maximumAge` old and no packet since is missing: a new
    /// subscriber gets everything from there at once, instead of waiting for another keyframe.
    public func replayStart(at now: MonotonicTime, maximumAge: TimeInterval) -> Int64? {
        guard let lastKeyframe, now - lastKeyframe.arrival <= maximumAge else { return nil }
        guard history.record(lastKeyframe.firstSequence) != nil else { return nil }
        for sequence in lastKeyframe.firstSequence...sequences.highest where !sequences.contains(sequence) {
            return nil
        }
        return lastKeyframe.firstSequence
    }
}

/// Counters of a layer since the track began.
struct LayerTotals: Sendable {
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    var repaired: UInt64 = 0
    /// Retransmissions of packets that had arrived: the sender's bandwidth probes (measured: Chromium). Never forwarded.
    var probes: UInt64 = 0
    var nacks: UInt64 = 0
    var keyframeRequests: UInt64 = 0
    var keyframes: UInt64 = 0
}

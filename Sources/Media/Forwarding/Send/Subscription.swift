public import MediaControl
public import Primitives

/// One track as one subscriber receives it: flat state in contiguous storage, changed by index.
///
/// ```text
///                 plan                                   write
///  fresh packets ------> SentPacket (number, deltas) ---------> clear packet in the subscriber's run of slots
///                  |            |                       ^
///                  |            v                       | repeat (NACK)
///                  |         SentPacketRing ------------+
///                  +-- keyframe wanted, started, no common codec: `Signals`
/// ```
/// `plan` decides and numbers; `write` makes bytes. Packets themselves stay in the track's history, once for all subscribers.
public struct Subscription: ~Copyable {
    /// What came up while packets were planned; the engine acts on it.
    public struct Signals: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The target layer should send a keyframe.
        public static let wantsKeyframe = Self(rawValue: 1)
        /// The first packet of the subscription is on its way.
        public static let started = Self(rawValue: 2)
        /// The track's format is none that the subscriber accepts; told once a binding.
        public static let noCommonCodec = Self(rawValue: 4)
        /// Packets begin that nothing was decided about yet.
        public static let wantsDecision = Self(rawValue: 8)
        /// The publisher sends a layer that no decision has known; it is measured by `PublishedTrack.measuringTime` later.
        public static let seesMore = Self(rawValue: 16)
    }

    public let id: SubscriptionID
    public let kind: MediaKind
    public let ssrc: UInt32
    public let rtxSSRC: UInt32?

    var wire: SubscriptionWire
    var accepted: [PayloadFormat]
    var formats = FormatMap()
    var selector: LayerSelector
    var ranges: NumberRanges
    var ring: SentPacketRing
    /// Counts bindings; numbers of an older one are not repeated, their track may be gone.
    var epoch: UInt8 = 0
    var isBound = false
    public internal(set) var isPaused: Bool
    /// Bandwidth does not allow even the lowest layer, or too many pictures are wanted.
    public internal(set) var isHeldBack = false
    /// It is held back until there are packets to decide about.
    var awaitsPackets = false
    /// The publisher sends one stream only.
    var isSingleStream = true
    /// The highest output number used, extended.
    var highest: Int64
    /// What the last forwarded packet looked like to the subscriber.
    var tail = OutputTail()
    /// What the last switch down left behind.
    var leftVideo = LeftVideo()
    /// The end of a spatial layer that may be the end of its picture.
    var held = HeldPacket()
    /// Extended RTX number, its own space (RFC 4588 section 4).
    var rtxHighest: UInt16
    /// The highest number when packets began to be written in another way: with other ids or payload types.
    var renegotiatedAt = Int64.min
    /// Until the receiver's first report on the SSRC, packets of the media stream carry the mid.
    var sendsMID: Bool
    /// Publisher's clock to server's clock, 32.32 fixed point; nil before the publisher's first sender report.
    public var captureOffset: Int64?
    var toldNoCommonCodec = false
    /// The last packet of the target layer was of a format that the subscriber does not take: a keyframe would not help.
    var isRefused = false
    var hasStarted = false
    public internal(set) var totals = SubscriptionTotals()
    public var reports: SenderReportState

    /// `random` gives the first sequence numbers, below 2^15 so that both ends agree on the roll-over counter from the first
    /// packet on (RFC 3711 section 3.3.1).
    public init(_ description: SubscriptionDescription, random: inout RandomSource) {
        id = description.id
        kind = description.kind
        ssrc = description.ssrc
        rtxSSRC = description.rtxSSRC
        wire = SubscriptionWire(description)
        accepted = description.formats
        isPaused = description.paused
        sendsMID = true
        let isVideo = description.kind == .video
        selector = LayerSelector(preference: description.preference)
        ranges = NumberRanges(capacity: isVideo ? 32 : 4)
        let repeats = description.rtxSSRC != nil || description.feedback.contains(.nack)
        ring = SentPacketRing(
            maximum: isVideo ? SentPacketRing.maximumVideo : (repeats ? SentPacketRing.maximumAudio : 0))
        highest = 0x10000 + Int64(random.next() & 0x3fff)
        rtxHighest = UInt16(truncatingIfNeeded: random.next() & 0x3fff)
        reports = SenderReportState(cname: description.cname)
    }

    /// Asks for the memory beside the struct itself that `plan` will use.
    @inline(__always) public func prefetch() {
        if ranges.count > 0 { Prefetch.lines(ranges.current, MemoryLayout<NumberRange>.size) }
        ring.prefetch(UInt32(truncatingIfNeeded: highest &+ 1))
    }

    /// Bytes of memory beside the struct itself.
    public var memoryBytes: Int { ring.memoryBytes + ranges.memoryBytes }

    /// Bytes that a packet of the subscription can be longer than the stored one, protection not counted.
    public static let overhead = RTPLayout.overhead

    /// The layer being forwarded; nil while none is.
    public var layer: Int? { selector.active < 0 ? nil : Int(selector.active) }

    /// Age up to which a keyframe in the history serves a newcomer.
    public var replayAge: TimeInterval { selector.replayLimit }

    /// Whether the subscriber negotiated the video orientation.
    public var hasOrientation: Bool { wire.extensions[.videoOrientation] != 0 }

    /// New formats, extensions or mid of a section that goes on; SSRCs and numbering stay.
    public mutating func update(_ description: SubscriptionDescription, track: PublishedTrack?) {
        let former = wire, formerFormats = formats
        wire = SubscriptionWire(description)
        wire.ssrc = ssrc
        wire.rtxSSRC = rtxSSRC ?? 0
        accepted = description.formats
        sendsMID = true
        toldNoCommonCodec = false
        isRefused = false
        if let track { formats = FormatMap(from: track.description.formats, to: accepted) }
        if formats != formerFormats || !wire.writes(like: former) { renegotiatedAt = highest }
    }
}

/// What a subscription has sent since it began.
public struct SubscriptionTotals: Sendable {
    public var packets: UInt64 = 0
    public var bytes: UInt64 = 0
    /// Payload bytes, as sender reports count them (RFC 3550 section 6.4.1).
    public var payloadBytes: UInt64 = 0
    public var repeats: UInt64 = 0
    public var nacks: UInt64 = 0
    public var keyframeRequests: UInt64 = 0
    public var switches: UInt64 = 0
    /// As last reported by the receiver, 0 to 255.
    public var fractionLost: UInt8 = 0
    var rate = RateMeter()

    public init() {}
}

/// The subscriber's view of the last packet, from which the next source goes on without a jump.
struct OutputTail {
    var timestamp: UInt32 = 0
    /// Extended source timestamp and sequence number, and the layer and format they are of.
    var sourceTimestamp: Int64 = 0
    var sourceSequence: Int64 = 0
    var layer = 0
    var format: UInt8 = 0
    /// The binding of the subscription it belongs to.
    var epoch: UInt8 = 0
    var arrival = MonotonicTime.zero
    var clock: SenderClock?
    var codec = Codec.otherAudio
    /// Numbers of the last frame; nil where the codec or the source had none.
    var picture: UInt16?
    var temporalZero: UInt8?
    var keyIndex: UInt8?
    var frame: UInt16?
    /// The last packet ended its frame.
    var isFrameComplete = true
    /// Nothing was sent yet.
    var isEmpty = true
}

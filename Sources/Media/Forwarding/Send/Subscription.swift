public import MediaControl
public import Primitives

/// One track as one subscriber receives it: flat state in contiguous storage, changed by index.
///
/// ```text
///                 plan                                   write
///  fresh packets ------> SentPacket (number, deltas) ---------> clear packet in the subscriber's run of slots
///                  |            |                       ^
///                  |            v                       | retransmission (NACK)
///                  |         SentPacketRing ------------+
///                  +-- keyframe needed, started, no common codec: `Signals`
/// ```
/// `plan` decides and numbers; `write` renders. The packets themselves stay in the track's history, once for all subscribers.
public struct Subscription: ~Copyable {
    /// What happened while packets were planned; the engine acts on it.
    public struct Signals: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The target layer should send a keyframe.
        public static let wantsKeyframe = Self(rawValue: 1)
        /// The first packet of the subscription is being sent.
        public static let started = Self(rawValue: 2)
        /// The subscriber does not accept the track's format; reported once per binding.
        public static let noCommonCodec = Self(rawValue: 4)
        /// Packets arrive for which no bandwidth decision was made yet.
        public static let wantsDecision = Self(rawValue: 8)
        /// The publisher sends a layer that no decision knew; it is measured after `PublishedTrack.measuringTime`.
        public static let foundLayer = Self(rawValue: 16)
    }

    public let id: SubscriptionID
    public let kind: MediaKind

    var section: SendSection
    var selector: LayerSelector
    var numbering: OutputNumbering
    /// The video that the last switch down left.
    var abandonedVideo = AbandonedVideo()
    var ring: SentPacketRing
    var isBound = false
    public internal(set) var isPaused: Bool
    var hold = Hold.none
    var formatMatch = FormatMatch.accepted
    /// The end of a spatial layer, which may be the end of its picture.
    var held = HeldPacket()
    var rtxNumbers: RTXNumbers
    var hasStarted = false
    public internal(set) var totals = SubscriptionTotals()
    public var reports: SenderReportState

    /// `random` gives the first sequence numbers, below 2^15 so that both ends agree on the roll-over counter from the first
    /// packet on (RFC 3711 section 3.3.1).
    public init(_ description: SubscriptionDescription, random: inout RandomSource) {
        id = description.id
        kind = description.kind
        section = SendSection(description)
        isPaused = description.paused
        let isVideo = description.kind == .video
        selector = LayerSelector(preference: description.preference)
        let first = 0x10000 + Int64(random.next() & 0x3fff)
        numbering = OutputNumbering(after: first, ranges: isVideo ? 32 : 4)
        let repeats = description.rtxSSRC != nil || description.feedback.contains(.nack)
        ring = SentPacketRing(
            maximum: isVideo ? SentPacketRing.maximumVideo : (repeats ? SentPacketRing.maximumAudio : 0))
        rtxNumbers = RTXNumbers(after: UInt16(truncatingIfNeeded: random.next() & 0x3fff))
        reports = SenderReportState(cname: description.cname)
    }

    /// Prefetches the memory outside the struct that `plan` will use.
    @inline(__always) public func prefetch() {
        numbering.prefetch()
        ring.prefetch(UInt32(truncatingIfNeeded: numbering.highest &+ 1))
    }

    /// Bytes of memory besides the struct itself.
    public var memoryBytes: Int { ring.memoryBytes + numbering.memoryBytes }

    /// Maximum growth of a stored packet when sent, without protection.
    public static let overhead = RTPLayout.overhead

    public var ssrc: UInt32 { section.wire.ssrc }

    /// nil if RTX was not negotiated.
    public var rtxSSRC: UInt32? { section.wire.rtxSSRC == 0 ? nil : section.wire.rtxSSRC }

    /// Publisher's clock to server's clock, 32.32 fixed point; nil before the publisher's first sender report.
    public var captureOffset: Int64? {
        get { section.captureOffset }
        set { section.captureOffset = newValue }
    }

    /// Bandwidth does not allow even the lowest layer, or too many videos are subscribed to.
    public var isHeldBack: Bool { hold != .none }

    /// The layer being forwarded; nil while none is.
    public var layer: Int? { selector.active.map { Int($0) } }

    /// Maximum age of a keyframe in the history with which a new subscriber starts.
    public var replayAge: TimeInterval { selector.replayLimit }

    /// Whether the subscriber negotiated the video orientation extension.
    public var hasOrientation: Bool { section.wire.extensions[.videoOrientation] != 0 }

    /// Applies new formats, extensions or mid of an existing section; SSRCs and numbering stay.
    public mutating func update(_ description: SubscriptionDescription, track: PublishedTrack?) {
        section.update(description, track: track, highest: numbering.highest)
        formatMatch = .accepted
    }

    /// Pads packets of one turn, as planned, that differ by a few bytes to equal length; returns how many were padded.
    public func level(_ items: UnsafeMutableBufferPointer<SentPacket>, of track: PublishedTrack) -> Int {
        section.level(items, of: track)
    }

    // MARK: - What the receiver reports

    /// Processes one report block about the subscription's SSRCs; returns the round trip, if it reveals one.
    public mutating func receivedReport(
        ssrc: UInt32, fractionLost: UInt8, lastReport: UInt32, delay: UInt32, at now: MonotonicTime
    ) -> TimeInterval? {
        guard ssrc == self.ssrc else { return nil }
        section.receiverReported()
        totals.fractionLost = fractionLost
        return reports.roundTrip(lastReport: lastReport, delay: delay, at: now)
    }

    /// Counts a keyframe request of the receiver.
    public mutating func countKeyframeRequest() { totals.keyframeRequests &+= 1 }

    /// Bits per second over the last second, retransmissions included.
    public func bitrate(at now: MonotonicTime) -> Bitrate { .bitsPerSecond(Int64(totals.rate.perSecond(at: now) * 8)) }
}

/// Whether a lack of bandwidth keeps a subscription from sending.
enum Hold {
    case none
    /// Bandwidth does not allow even the lowest layer, or too many videos are subscribed to.
    case byBandwidth
    /// The same, until there are packets to decide about.
    case untilPackets
}

/// Whether the subscriber accepts the format that the publisher sends.
enum FormatMatch {
    case accepted
    /// It does not, and that was reported: a keyframe would not help.
    case refused
    /// It does again; another refusal is not reported.
    case acceptedAgain
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

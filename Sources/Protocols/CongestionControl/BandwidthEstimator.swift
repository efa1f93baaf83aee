public import Primitives

/// How fast one peer may be sent to.
///
/// ```text
///  sent(…) ──> SentPackets ─────────────┐
///                                       v
///  feedback ─> report(…) ──> groups ─> DelayTrend ─> RateControl ──┐
///                       ├──> DeliveryWindow, AcknowledgedRate ─^   ├─> least of all ─> estimate
///                       ├──> LossBound ────────────────────────────┤
///                       └──> ProbeMeasure ─> RateControl           │
///  REMB ─────────────────────> ReceiverLimit ──────────────────────┘
///  demand ─> ProbePlanner ─> probe: so many bytes at this rate, padded by the caller
/// ```
/// Follows Google's congestion control as draft-ietf-rmcat-gcc-02 and libwebrtc have it; each part says where it differs. Knows no RTP: the caller
/// numbers packets and reads feedback. Nothing is allocated for a packet.
public struct BandwidthEstimator: ~Copyable {
    /// Bounds and the value to begin with.
    public struct Settings: Sendable {
        /// What one video in its smallest size takes, with sound: worth seeing at once, and no flood for a 250 kbit/s link. The first probe, a
        /// tenth of a second later, finds the rest (libwebrtc begins with as much).
        public var start = Bitrate.kilobitsPerSecond(300)
        /// Sound survives with this.
        public var least = Bitrate.kilobitsPerSecond(40)
        /// More than any client takes.
        public var most = Bitrate.kilobitsPerSecond(100_000)

        public init() {}
    }

    /// Whether the estimate can be believed.
    public enum Phase: Sendable, Equatable {
        /// Nothing was heard yet: the start value.
        case untested
        /// Feedback comes.
        case measuring
        /// Packets are on their way, and nothing is heard: an outage, or a dead peer.
        case silent
    }

    /// IPv4 and UDP headers, which the bottleneck carries too.
    public static let wireOverhead = 28
    /// Without feedback for so long, while packets are out, the path is taken for broken.
    static let patience = TimeInterval.milliseconds(1_000)
    /// Microseconds of waiting that no slope of the delay is needed for.
    static let flood: Int64 = 120_000
    /// So long after an alarm reports are about what was sent before it: a queue of 300 ms, a round trip and the 100 ms between two reports.
    static let alarmTime = TimeInterval.milliseconds(500)
    /// Seconds that what is on its way takes to pass, beyond a round trip; at ease the time between two reports and a frame make less than 150 ms of it.
    static let mostOnItsWay = 0.25
    /// Microseconds of waiting that a path at ease does not have: a picture's packets at twice its rate take 15 ms.
    static let standingQueue: Int64 = 50_000
    /// Microseconds of waiting that are none.
    static let drained: Int64 = 15_000
    /// Share of lost packets beside others that fill the queue, above which less must be sent (draft-ietf-rmcat-gcc-02 section 6).
    static let mostForeignLoss = 0.1
    static let silentStep = TimeInterval.milliseconds(500)
    /// Bits a second of the few packets that ask, in a silence, whether the path is back: where nothing fits any more, nothing else is sent that
    /// could be answered.
    static let knock = 100_000.0
    /// Without packets told about for so long the path may have changed.
    static let streamTimeout = TimeInterval.seconds(2)

    // What a packet that leaves touches comes first, so that it is two or three cache lines.
    var packets = SentPackets()
    var probe = ProbeState()
    /// Bytes sent since the last look at the application's limit.
    var bytesSinceLook = 0
    var firstSent: MonotonicTime?
    public internal(set) var phase = Phase.untested
    /// Smoothed round trip by feedback; nil before the first.
    public internal(set) var roundTrip: TimeInterval?
    /// Packets told as received and as lost.
    public internal(set) var received: UInt64 = 0
    public internal(set) var lost: UInt64 = 0

    let settings: Settings
    var groups = ArrivalGroups()
    var trend = DelayTrend()
    var queue = QueueDelay()
    var jitter = ArrivalJitter()
    var foreign = ForeignQueue()
    var acknowledged = AcknowledgedRate()
    var delivery = DeliveryWindow()
    var control: RateControl
    var losses = LossBound()
    var application = ApplicationLimit()
    var receiver = ReceiverLimit()
    var planner = ProbePlanner()
    var measure = ProbeMeasure()
    var probeOutcome: ProbeOutcome?

    var lastFeedback = MonotonicTime.zero
    var lastReported = MonotonicTime.zero
    var nextSilentStep = MonotonicTime.distantFuture
    var nextKnock = MonotonicTime.distantFuture
    /// When it was last asked whether there is an outage.
    var lastAsked = MonotonicTime.zero
    var rateBeforeSilence = 0.0
    /// What was sent before went over another path: its delays say nothing of this one.
    var pathSince = MonotonicTime.zero
    /// Losses of packets sent before this are the outage's, not the rate's.
    var ignoresLossBefore = MonotonicTime.zero
    var lastOveruse = MonotonicTime.zero
    var digest = FeedbackDigest()

    public init(settings: Settings = Settings()) {
        self.settings = settings
        control = RateControl(
            start: Double(settings.start.bitsPerSecond), least: Double(settings.least.bitsPerSecond),
            most: Double(settings.most.bitsPerSecond))
    }

    /// Bytes of memory beside the struct itself.
    public var memoryBytes: Int { packets.memoryBytes }

    /// Bits a second that the path is believed to carry, headers included.
    public func estimate(at now: MonotonicTime) -> Bitrate {
        var value = control.bitsPerSecond
        if let limit = losses.limit { value = min(value, limit) }
        // Without transport-wide feedback it is all there is.
        if phase == .untested {
            value = receiver.limitAlone(at: now) ?? value
        } else if let limit = receiver.bitsPerSecond(at: now) {
            value = min(value, limit)
        }
        return .bitsPerSecond(
            Int64(min(max(value, Double(settings.least.bitsPerSecond)), Double(settings.most.bitsPerSecond))))
    }

    /// Whether anything was measured, by whichever side.
    public func isEstablished(at now: MonotonicTime) -> Bool {
        phase != .untested || receiver.limitAlone(at: now) != nil
    }

    /// Whether transport-wide feedback has come.
    public var isMeasured: Bool { phase != .untested }

    /// Whether the path has shown in the last seconds that it carries no more than the estimate. Where it has not, the estimate may just
    /// lag behind what is sent.
    public func isCongested(at now: MonotonicTime) -> Bool {
        switch phase {
        case .untested: return receiver.limitAlone(at: now) != nil
        case .silent: return true
        case .measuring:
            if isStale(at: now) || isContested { return false }
            if queueWait > Self.standingQueue { return true }
            if lastOveruse != .zero, now - lastOveruse < Self.streamTimeout { return true }
            let told = min(losses.limit ?? .infinity, receiver.bitsPerSecond(at: now) ?? .infinity)
            return told < control.bitsPerSecond
        }
    }

    /// Whether nothing was sent for a while, perhaps because nothing fits: what was known of queues and losses is out of date, and only a probe
    /// tells.
    func isStale(at now: MonotonicTime) -> Bool {
        packets.bytesInFlight == 0 && now - lastFeedback >= Self.streamTimeout
    }

    /// When the rate fell for what soon afterwards turned out to be a stall, as radio links have them, the last time; nil before one.
    public var wrongFall: MonotonicTime? { planner.wrongFall }

    /// Losses hold the estimate below what delay and probes say, as where what exceeds a rate is dropped at once and bursts pass.
    public var isBoundByLoss: Bool { losses.limit.map { $0 < control.bitsPerSecond } ?? false }

    /// Others keep the queue of the path full.
    public var isContested: Bool { foreign.isForeign }

    /// When the first packet left; nil before it.
    public var sendingSince: MonotonicTime? { firstSent }
    /// The last seconds' share of lost packets, 0 to 1.
    public var lossRate: Double { losses.averageLoss }
    /// How long packets wait in queues of the path.
    public var queueDelay: TimeInterval { .microseconds(queueWait) }
    /// The same in microseconds.
    var queueWait: Int64 { queue.value(besides: jitter.value) }
    /// Whether much more is on its way than passes soon. Just after an alarm that is known before it shows as a delay: reports are as old as the queue is
    /// long.
    public func isFlooded(at now: MonotonicTime) -> Bool {
        guard lastOveruse != .zero, now - lastOveruse < Self.alarmTime, !isContested else { return false }
        let passesIn = Double(packets.bytesInFlight * 8) / control.bitsPerSecond
        return passesIn - (roundTrip?.seconds ?? 0) > Self.mostOnItsWay
    }
    /// Bits a second that arrive; nil before half a second of feedback.
    public var acknowledgedRate: Bitrate? { acknowledged.bitsPerSecond.map { .bitsPerSecond(Int64($0)) } }
    /// Less is sent than could be.
    public var isApplicationLimited: Bool { application.isLimited }
    public var bytesInFlight: Int { packets.bytesInFlight }

    // MARK: - Sending

    /// `size` bytes (the datagram, without IP and UDP headers) leave under the transport-wide number `sequence`.
    @inline(__always) public mutating func sent(_ sequence: UInt16, size: Int, at now: MonotonicTime) {
        let wire = size &+ Self.wireOverhead
        var id: UInt8 = 0
        if probe.isSending { id = noteProbe(wire, at: now) }
        // Silence begins with a packet that is not answered, not with the last one that was.
        if packets.bytesInFlight == 0 { lastFeedback = now }
        packets.note(sequence, size: wire, probe: id, mayGrow: phase != .untested, at: now)
        bytesSinceLook &+= wire
        if firstSent == nil { begin(at: now) }
    }

    /// Asks for the place that the packet `sequence` will be noted in.
    @inline(__always) public func prefetch(next sequence: UInt16) { packets.prefetch(sequence) }

    /// Asks for the entries that the next feedback tells of.
    @inline(__always) public func prefetchReported() { packets.prefetchReported() }

    private mutating func begin(at now: MonotonicTime) {
        firstSent = now
        lastFeedback = now
    }

    // MARK: - What the receiver says besides

    /// The receiver's own estimate (REMB); `sent` is what has been sent to it since the last one, nil where that is not known.
    public mutating func receiverEstimate(_ bitrate: Bitrate, sent: Bitrate?, at now: MonotonicTime) {
        receiver.take(Double(bitrate.bitsPerSecond), sent: sent.map { Double($0.bitsPerSecond) }, at: now)
    }

    /// What is wanted, so that probing knows what for. Bits a second on the wire; `next` is nil when nothing more is wanted.
    public mutating func setDemand(allocated: Bitrate, next: Bitrate?, wanted: Bitrate, at now: MonotonicTime) {
        planner.setDemand(
            .init(
                allocated: Double(allocated.bitsPerSecond), next: next.map { Double($0.bitsPerSecond) },
                wanted: Double(wanted.bitsPerSecond)), at: now)
    }
}

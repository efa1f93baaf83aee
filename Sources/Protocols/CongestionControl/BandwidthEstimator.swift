public import Primitives

/// Estimates how fast packets may be sent to one peer.
///
/// ```text
///  sent(…) ──> SentPackets ─────────────┐
///                                       v
///  feedback ─> report(…) ──> groups ─> DelayTrend ─> RateControl ──┐
///                       ├──> DeliveryWindow, AcknowledgedRate ─^   ├─> minimum ──────> estimate
///                       ├──> LossBound ────────────────────────────┤
///                       └──> ProbeMeasure ─> RateControl           │
///  REMB ─────────────────────> ReceiverLimit ──────────────────────┤
///  receiver reports alone ───> ReportedLoss ───────────────────────┘
///  demand ─> ProbePlanner ─> probe: so many bytes at this rate, padded by the caller
/// ```
/// Follows Google's congestion control as in draft-ietf-rmcat-gcc-02 and libwebrtc; each part states its differences. Independent of RTP: the caller
/// numbers packets and reads feedback. Nothing is allocated for a packet.
public struct BandwidthEstimator: ~Copyable {
    /// Limits and the start value.
    public struct Settings: Sendable {
        /// Enough for one video in its smallest size with audio: worth seeing at once, and no flood for a 250 kbit/s link. The first probe, a
        /// tenth of a second later, finds the rest (libwebrtc starts with the same value).
        public var start = Bitrate.kilobitsPerSecond(300)
        /// Enough for audio.
        public var least = Bitrate.kilobitsPerSecond(40)
        /// More than any client needs.
        public var most = Bitrate.kilobitsPerSecond(100_000)

        public init() {}
    }

    /// How reliable the estimate is.
    public enum Phase: Sendable, Equatable {
        /// No feedback yet: the start value.
        case untested
        /// Feedback arrives.
        case measuring
        /// Packets are in flight, but no feedback arrives: an outage, or a dead peer.
        case silent
    }

    /// IPv4 and UDP headers, which the bottleneck carries too.
    public static let wireOverhead = 28
    /// Without feedback for this long, while packets are in flight, the path counts as broken.
    static let patience = TimeSpan.milliseconds(1_000)
    /// Microseconds of waiting that prove congestion without a slope of the delay.
    static let flood: Int64 = 120_000
    /// For this long after an alarm, reports are about packets sent before it: a queue of 300 ms, a round trip and the 100 ms between two reports.
    static let alarmTime = TimeSpan.milliseconds(500)
    /// Seconds to deliver what is in flight, beyond a round trip; normally the time between two reports and a frame account for less than 150 ms of it.
    static let mostOnItsWay = 0.25
    /// Microseconds of waiting that an uncongested path does not have: a frame's packets at twice its rate take 15 ms.
    static let standingQueue: Int64 = 50_000
    /// Up to this many microseconds of waiting the queue counts as empty.
    static let drained: Int64 = 15_000
    /// Share of lost packets, next to other traffic that fills the queue, above which less must be sent (draft-ietf-rmcat-gcc-02 section 6).
    static let maximumCrossTrafficLoss = 0.1
    static let silentStep = TimeSpan.milliseconds(500)
    /// Bits per second of the few packets that test, during a silence, whether the path is back: if no layer fits any more, nothing else is sent that
    /// could be answered.
    static let pathTestRate = 100_000.0
    /// Without reported packets for this long the path may have changed.
    static let streamTimeout = TimeSpan.seconds(2)

    // The fields that sending a packet touches come first, so that they take two or three cache lines.
    var packets = SentPackets()
    var probe = ProbeState()
    /// Bytes sent since the last update of the application limit.
    var bytesSinceUpdate = 0
    var firstSent: MonotonicTime?
    public internal(set) var phase = Phase.untested
    /// Round trips by feedback.
    var trips = RoundTrip()
    /// Packets reported as received and as lost.
    public internal(set) var received: UInt64 = 0
    public internal(set) var lost: UInt64 = 0

    /// The path is a TCP connection: it loses nothing, and what is reported as missing was dropped before it. A queue shows as delay all the same.
    public var isReliable = false

    let settings: Settings
    var groups = ArrivalGroups()
    var trend = DelayTrend()
    var queue = QueueDelay()
    var jitter = ArrivalJitter()
    var crossTraffic = CrossTrafficQueue()
    var constantWait = ConstantWait()
    var acknowledged = AcknowledgedRate()
    var delivery = DeliveryWindow()
    var control: RateControl
    var losses = LossBound()
    var lossLift = LossLift()
    var application = ApplicationLimit()
    var receiver = ReceiverLimit()
    var reported = ReportedLoss()
    var planner = ProbePlanner()
    var measure = ProbeMeasure()
    var probeOutcome: ProbeOutcome?
    var messages = DataPace()

    var lastFeedback = MonotonicTime.zero
    var lastReported = MonotonicTime.zero
    var nextSilentStep = MonotonicTime.distantFuture
    var nextPathTest = MonotonicTime.distantFuture
    /// When an outage was last tested for.
    var lastPathTest = MonotonicTime.zero
    var rateBeforeSilence = 0.0
    /// Earlier packets used another path: their delays reveal nothing about this one.
    var pathSince = MonotonicTime.zero
    /// Losses of packets sent before this are due to the outage and not to the rate.
    var ignoresLossBefore = MonotonicTime.zero
    var lastOveruse = MonotonicTime.zero
    var digest = FeedbackDigest()

    public init(settings: Settings = Settings()) {
        self.settings = settings
        control = RateControl(
            start: Double(settings.start.bitsPerSecond), least: Double(settings.least.bitsPerSecond),
            most: Double(settings.most.bitsPerSecond))
    }

    /// Smoothed round trip by feedback; nil before the first.
    var roundTrip: TimeSpan? { trips.smoothed }

    /// Bytes of memory besides the struct itself.
    public var memoryBytes: Int { packets.memoryBytes }

    /// The estimated capacity of the path in bits per second, headers included.
    public func estimate(at now: MonotonicTime) -> Bitrate {
        var value = control.bitsPerSecond
        if let limit = losses.limit { value = min(value, limit) }
        if phase == .untested {
            value = limitWithoutFeedback(at: now) ?? value
        } else if let limit = receiver.bitsPerSecond(at: now) {
            value = min(value, limit)
        }
        return .bitsPerSecond(
            Int64(min(max(value, Double(settings.least.bitsPerSecond)), Double(settings.most.bitsPerSecond))))
    }

    /// Without transport-wide feedback REMB is the only source, and without that the losses in receiver reports are.
    private func limitWithoutFeedback(at now: MonotonicTime) -> Double? {
        receiver.bitsPerSecond(at: now) == nil ? reported.bitsPerSecond(at: now) : receiver.limitAlone(at: now)
    }

    /// Whether there is any measurement, by either side.
    public func isEstablished(at now: MonotonicTime) -> Bool {
        phase != .untested || limitWithoutFeedback(at: now) != nil
    }

    /// Whether transport-wide feedback has arrived.
    public var isMeasured: Bool { phase != .untested }

    /// Whether the path has shown in the last seconds that it carries no more than the estimate. If it has not, the estimate may just
    /// lag behind what is sent.
    public func isCongested(at now: MonotonicTime) -> Bool {
        switch phase {
        case .untested: return limitWithoutFeedback(at: now) != nil
        case .silent: return true
        case .measuring:
            if isStale(at: now) || isContested { return false }
            if queueWait > Self.standingQueue { return true }
            if lastOveruse != .zero, now - lastOveruse < Self.streamTimeout { return true }
            let limit = min(losses.limit ?? .infinity, receiver.bitsPerSecond(at: now) ?? .infinity)
            return limit < control.bitsPerSecond
        }
    }

    /// Whether nothing was sent for a while, perhaps because nothing fits: what was known of queues and losses is outdated, and only a probe
    /// shows the present state.
    func isStale(at now: MonotonicTime) -> Bool {
        packets.bytesInFlight == 0 && now - lastFeedback >= Self.streamTimeout
    }

    /// When the rate last fell for what soon turned out to be a stall, as radio links have them; nil before the first.
    public var wrongFall: MonotonicTime? { planner.wrongFall }

    /// Losses keep the estimate below what delay and probes suggest, as on links that drop the excess above a rate at once and let bursts pass.
    public var isBoundByLoss: Bool { losses.limit.map { $0 < control.bitsPerSecond } ?? false }

    /// The link's limit by the last probe; nil if that found none, or if the link has carried more or less since.
    public var probedLimit: Bitrate? { control.capacity.probed.map { .bitsPerSecond(Int64($0)) } }

    /// Other traffic keeps the queue of the path full.
    public var isContested: Bool { crossTraffic.isPresent }

    /// When the first packet was sent; nil before it.
    public var sendingSince: MonotonicTime? { firstSent }
    /// The last seconds' share of lost packets, 0 to 1.
    public var lossRate: Double { losses.averageLoss }
    /// How long packets wait in queues on the path.
    public var queueDelay: TimeSpan { .microseconds(queueWait) }
    /// The same in microseconds.
    var queueWait: Int64 { queue.value(besides: jitter.value) }
    /// Whether much more is in flight than can be delivered soon. Just after an alarm this is known before it shows as a delay: reports are as old as the
    /// queue is long.
    public func isFlooded(at now: MonotonicTime) -> Bool {
        guard lastOveruse != .zero, now - lastOveruse < Self.alarmTime, !isContested else { return false }
        let passesIn = Double(packets.bytesInFlight * 8) / control.bitsPerSecond
        return passesIn - (roundTrip?.seconds ?? 0) > Self.mostOnItsWay
    }
    /// Bits per second that arrive; nil before half a second of feedback.
    public var acknowledgedRate: Bitrate? { acknowledged.bitsPerSecond.map { .bitsPerSecond(Int64($0)) } }
    /// Less is sent than the estimate allows.
    public var isApplicationLimited: Bool { application.isLimited }
    public var bytesInFlight: Int { packets.bytesInFlight }

    // MARK: - Sending

    /// Records `size` bytes (the datagram, without IP and UDP headers) sent with the transport-wide number `sequence`.
    @inline(__always) public mutating func sent(_ sequence: UInt16, size: Int, at now: MonotonicTime) {
        let wire = size &+ Self.wireOverhead
        var id: UInt8 = 0
        if probe.isSending { id = noteProbe(wire, at: now) }
        // Silence starts at an unanswered packet and not at the last answered one.
        if packets.bytesInFlight == 0 { lastFeedback = now }
        packets.note(sequence, size: wire, probe: id, mayGrow: phase != .untested, at: now)
        bytesSinceUpdate &+= wire
        if firstSent == nil { begin(at: now) }
    }

    // `mutating`: to lend all of the estimator to a function of another module, the compiler would copy it, which reads 3 kB to prefetch 16 bytes.

    /// Prefetches the entry for the packet `sequence`.
    @inline(__always) public mutating func prefetch(next sequence: UInt16) { packets.prefetch(sequence) }

    /// Prefetches the entries of the packets in the next feedback.
    @inline(__always) public mutating func prefetchReported() { packets.prefetchReported() }

    private mutating func begin(at now: MonotonicTime) {
        firstSent = now
        lastFeedback = now
    }

    // MARK: - Messages next to media

    /// Bytes of messages that may leave now, so that media keeps the path; nil: media reveals nothing about the path, and nothing is limited.
    public mutating func messageAllowance(at now: MonotonicTime) -> Int? {
        guard phase != .untested, now - lastReported < Self.patience else { return nil }
        // A probe measures what the path carries in addition to media.
        return probe.isSending ? 0 : messages.allowance(estimate: Double(estimate(at: now).bitsPerSecond), at: now)
    }

    /// Messages of this many bytes have left. With `moreWait`, returns when more may leave.
    public mutating func sentMessages(_ bytes: Int, moreWait: Bool, at now: MonotonicTime) -> MonotonicTime {
        messages.sent(bytes, at: now)
        return moreWait ? messages.limited(at: now) : .distantFuture
    }

    // MARK: - Receiver estimate and demand

    /// Applies the receiver's own estimate (REMB); `sent` is the rate sent to it since the last one, nil if unknown.
    public mutating func receiverEstimate(_ bitrate: Bitrate, sent: Bitrate?, at now: MonotonicTime) {
        receiver.apply(Double(bitrate.bitsPerSecond), sent: sent.map { Double($0.bitsPerSecond) }, at: now)
    }

    /// Applies receiver reports: the share of packets lost, and the rate sent, since the last ones.
    public mutating func receiverReports(lost: Double, sent: Bitrate, at now: MonotonicTime) {
        reported.apply(lost: lost, sent: Double(sent.bitsPerSecond), at: now)
    }

    /// Sets the demand, which determines what to probe for. Bits per second on the wire; `video` is the videos' part of `allocated`, `next` is nil if no higher
    /// step is in demand.
    public mutating func setDemand(
        allocated: Bitrate, video: Bitrate, next: Bitrate?, wanted: Bitrate, at now: MonotonicTime
    ) {
        lossLift.update(fitsVideo: video > .zero, isWanted: next != nil, at: now)
        planner.setDemand(
            .init(
                allocated: Double(allocated.bitsPerSecond), hasVideo: video > .zero,
                next: next.map { Double($0.bitsPerSecond) }, wanted: Double(wanted.bitsPerSecond)), at: now)
    }
}

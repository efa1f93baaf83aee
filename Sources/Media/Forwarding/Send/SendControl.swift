import CongestionControl
public import Primitives
public import RTP

/// How fast one subscriber is sent to: its estimator and its pacer, fed by what leaves and by what it reports.
///
/// Exists once something can be known: the subscriber's sections negotiated transport-wide numbers, or it sends REMB. Without it, and while a
/// subscriber that promised feedback gives none, nothing is limited.
public struct SendControl: ~Copyable {
    // What a packet that leaves touches comes first: `hotBytes`.
    private var pacer = Pacer()
    var estimator = BandwidthEstimator()
    private var clock = FeedbackClock()
    /// Bytes of probes that have left.
    public private(set) var probeBytes: UInt64 = 0

    /// A subscriber that reports does so within a second of the first packet.
    static let patience = TimeInterval.seconds(3)

    /// Feedback comes after some 100 ms, a probe's answer as long after that, and a second one.
    static let settling = TimeInterval.milliseconds(1_500)
    /// When the first measurement was there.
    private var establishedAt: MonotonicTime?
    /// What pictures and sound take by the last allocation.
    private var allocated = Bitrate.zero
    private var sentBytes: UInt64 = 0
    /// The last figure of the receiver's own: when, and what had been sent by then.
    private var lastReceiverEstimate: (at: MonotonicTime, sentBytes: UInt64)?

    public init() {}

    /// Bytes of memory beside the struct itself.
    public var memoryBytes: Int { estimator.memoryBytes + pacer.memoryBytes }

    // MARK: - What is known

    /// What may be sent, headers included; nil while there is no reason for any limit.
    public func estimate(at now: MonotonicTime) -> Bitrate? {
        if estimator.isEstablished(at: now) { return estimator.estimate(at: now) }
        // REMB alone, and it limits nothing.
        guard let since = estimator.sendingSince else {
            return lastReceiverEstimate == nil ? estimator.estimate(at: now) : nil
        }
        return now - since > Self.patience ? nil : estimator.estimate(at: now)
    }

    /// Whether the estimate comes from measurements, not from the start value.
    public func isEstablished(at now: MonotonicTime) -> Bool { estimator.isEstablished(at: now) }
    /// Whether losses, not queues, hold the estimate down.
    public var isBoundByLoss: Bool { estimator.isBoundByLoss }
    /// Whether the first probes have had their time: before that a lack of bandwidth is no more than a guess. It stays one where only REMB
    /// comes: that measures what is sent, and would never rise for a picture that is not.
    public func isSettled(at now: MonotonicTime) -> Bool {
        estimator.isMeasured && establishedAt.map { now - $0 > Self.settling } ?? false
    }

    /// Queues, losses, silence or the receiver itself say that the path carries no more than the estimate.
    public func isCongested(at now: MonotonicTime) -> Bool { estimator.isCongested(at: now) }

    /// When the estimate fell for a stall that was over at once, the last time; nil before one.
    public var wrongFall: MonotonicTime? { estimator.wrongFall }

    /// Smoothed round trip by feedback.
    public var roundTrip: TimeInterval? { estimator.roundTrip }
    /// Share of packets lost in the last seconds, 0 to 1.
    public var lossRate: Double { estimator.lossRate }
    /// How long packets wait in queues on the way.
    public var queueDelay: TimeInterval { estimator.queueDelay }
    /// Rate of what arrives.
    public var acknowledgedRate: Bitrate? { estimator.acknowledgedRate }
    /// Packets told as received.
    public var received: UInt64 { estimator.received }
    /// Packets are out and nothing is heard.
    public var isSilent: Bool { estimator.phase == .silent }

    // MARK: - Feedback

    /// Takes one transport-wide feedback; false when it is incomplete or tells of times that cannot be.
    public mutating func take(_ feedback: TransportFeedback, in datagram: RawSpan, at now: MonotonicTime) -> Bool {
        guard var reader = feedback.makeReader(in: datagram), let shift = clock.shift(of: feedback.referenceTime) else {
            return false
        }
        estimator.beginFeedback(at: now)
        while let status = reader.next(in: datagram) {
            // Steps of 250 us.
            estimator.report(status.sequence, arrival: status.arrival.map { ($0 + shift) * 250 })
        }
        estimator.endFeedback(at: now)
        refreshPacer(at: now)
        return true
    }

    /// Takes the receiver's own estimate (REMB).
    public mutating func receiverEstimate(_ bitrate: Bitrate, at now: MonotonicTime) {
        let sent = lastReceiverEstimate.flatMap { last -> Bitrate? in
            let elapsed = now - last.at
            guard elapsed >= Self.leastMeasured else { return nil }
            return .bitsPerSecond(Int64(Double((sentBytes - last.sentBytes) * 8) / elapsed.seconds))
        }
        if sent != nil || lastReceiverEstimate == nil { lastReceiverEstimate = (now, sentBytes) }
        estimator.receiverEstimate(bitrate, sent: sent, at: now)
        refreshPacer(at: now)
    }

    /// The subscriber is reached another way from now on.
    public mutating func pathChanged(at now: MonotonicTime) {
        estimator.pathChanged(at: now)
        refreshPacer(at: now)
    }

    /// A rate over less time than this is a picture's, not a stream's.
    private static let leastMeasured = TimeInterval.milliseconds(250)

    /// What is wanted, for probing; nil `next` where nothing more is.
    public mutating func setDemand(allocated: Bitrate, next: Bitrate?, wanted: Bitrate, at now: MonotonicTime) {
        estimator.setDemand(allocated: allocated, next: next, wanted: wanted, at: now)
        self.allocated = allocated
        refreshPacer(at: now)
    }

    private mutating func refreshPacer(at now: MonotonicTime) {
        if establishedAt == nil, estimator.isEstablished(at: now) { establishedAt = now }
        // The start value limits layers, not bursts: a keyframe to begin with is not held up on a guess.
        // Where packets already wait on the way, bursts only make them wait longer; where the queue is full, it must drain.
        let delay = estimator.queueDelay
        // Another's queue does not drain for our waiting.
        let isDraining = delay >= .milliseconds(150) && !estimator.isContested
        let factor = delay < .milliseconds(75) ? Pacer.factor : isDraining ? 0.9 : 1.5
        // What policy sends beyond the estimate must not wait for ever (libwebrtc paces by the greater of both, too).
        pacer.setEstimate(
            estimator.isEstablished(at: now) ? max(estimator.estimate(at: now), allocated) : nil, factor: factor)
    }

    // MARK: - Sending

    /// Notes that a datagram of `size` bytes leaves under a transport-wide number.
    @inline(__always) public mutating func sent(_ sequence: UInt16, size: Int, at now: MonotonicTime) {
        estimator.sent(sequence, size: size, at: now)
    }

    /// Lets the pacer's time pass; once before packets of a turn.
    @inline(__always) public mutating func refill(at now: MonotonicTime) { pacer.refill(at: now) }
    /// Whether a video packet may leave now.
    @inline(__always) public var isOpen: Bool { pacer.isOpen }
    /// Whether a repeat may leave now: ahead of pictures, but not without end into a full queue.
    @inline(__always) public var isOpenForRepeats: Bool { pacer.isOpenForRepeats }
    /// Counts bytes that left.
    @inline(__always) public mutating func spend(_ size: Int) {
        sentBytes &+= UInt64(size)
        pacer.spend(size)
    }

    /// Counts bytes that left and were a repeat.
    @inline(__always) public mutating func spendOnRepeat(_ size: Int) { pacer.spendOnRepeat(size) }

    /// Lets packet `sequence` of subscription `index` wait; false when there is no room.
    public mutating func wait(subscription index: Int, sequence: UInt32, size: Int, at now: MonotonicTime) -> Bool {
        let value = UInt64(UInt32(truncatingIfNeeded: index)) << 32 | UInt64(sequence)
        return pacer.enqueue(.init(value: value, size: size, since: now), priority: .video)
    }

    /// A packet that waited and may leave now.
    public mutating func nextWaiting(at now: MonotonicTime) -> (subscription: Int, sequence: UInt32)? {
        guard let token = pacer.next(at: now) else { return nil }
        return (Int(token.value >> 32), UInt32(truncatingIfNeeded: token.value))
    }

    /// Whether packets wait.
    public var isWaiting: Bool { !pacer.isEmpty }

    // MARK: - Time

    /// When `advance` and then `nextWaiting` want to be called.
    public func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        min(estimator.nextDeadline, pacer.nextDeadline(at: now))
    }

    /// Plans probes and notices silence.
    public mutating func advance(to now: MonotonicTime) {
        guard now >= estimator.nextDeadline else { return }
        estimator.advance(to: now)
        if estimator.phase == .silent { refreshPacer(at: now) }
    }

    /// Bytes of padding that should leave now for a probe; 0 for none.
    public func probeBytesDue(at now: MonotonicTime) -> Int { estimator.probeBytesDue(at: now) }

    /// Bytes of one packet of that padding.
    public var probePacketBytes: Int { estimator.probePacketBytes }

    /// Counts padding that left.
    public mutating func countProbe(_ size: Int) { probeBytes &+= UInt64(size) }

    /// There is nothing to pad with.
    public mutating func abandonProbe() { estimator.abandonProbe() }

    /// What became of the probe that ended last; nil where none did since this was asked.
    public mutating func takeProbeOutcome() -> ProbeOutcome? { estimator.takeProbeOutcome() }
}

import CongestionControl
public import Primitives
public import RTP

/// The path to one subscriber: how much it carries and when packets may leave for it, by what leaves and by what the subscriber reports.
///
/// Nothing is known, and nothing limited, before a packet with a transport-wide number leaves or a REMB comes, and while a subscriber that
/// promised feedback gives none.
public struct SendPath: ~Copyable {
    /// What a datagram that leaves is for the path.
    public enum Purpose: Sendable { case media, retransmission, probe }

    // What a packet that leaves touches comes first: `hotBytes`.
    private var pacer = Pacer()
    private var estimator = BandwidthEstimator()
    private var clock = FeedbackClock()
    /// Feedback is expected, or a REMB has come.
    private var isUsed = false
    /// Bytes of probes that have left.
    private var probeBytes: UInt64 = 0
    private var sentBytes: UInt64 = 0
    /// When the first measurement was there.
    private var establishedAt: MonotonicTime?
    /// What video and audio take by the last allocation.
    private var allocated = Bitrate.zero
    /// The last REMB: when, and what had been sent by then.
    private var lastReceiverEstimate: (at: MonotonicTime, sentBytes: UInt64)?

    /// A subscriber that reports does so within a second of the first packet.
    static let patience = TimeInterval.seconds(3)
    /// Feedback comes after some 100 ms, a probe's answer as long after that, and a second one.
    private static let settling = TimeInterval.milliseconds(1_500)
    /// A rate over less time than this is a frame's, not a stream's.
    private static let leastMeasured = TimeInterval.milliseconds(250)
    /// Five packets of this size are a probe of a 250 kbit/s link that delays nothing by more than 50 ms.
    private static let leastProbe = 240
    /// What passes any path.
    private static let mostProbe = 1_200

    public init() {}

    /// Bytes of memory beside the struct itself.
    public var memoryBytes: Int { estimator.memoryBytes + pacer.memoryBytes }

    // MARK: - What is known

    /// The subscriber has promised feedback: the start value holds until it comes.
    public mutating func expectFeedback() { isUsed = true }

    /// What may be sent, headers included; nil while there is no reason for any limit.
    public func estimate(at now: MonotonicTime) -> Bitrate? {
        guard isUsed else { return nil }
        if estimator.isEstablished(at: now) { return estimator.estimate(at: now) }
        // REMB alone, and it limits nothing.
        guard let since = estimator.sendingSince else {
            return lastReceiverEstimate == nil ? estimator.estimate(at: now) : nil
        }
        return now - since > Self.patience ? nil : estimator.estimate(at: now)
    }

    /// All that is known of the path now.
    public func condition(at now: MonotonicTime) -> PathCondition {
        guard isUsed else { return PathCondition() }
        var condition = PathCondition()
        condition.estimate = estimate(at: now)
        condition.isMeasured = estimator.isEstablished(at: now)
        // REMB measures what is sent, and would never rise for a video that is not: with REMB alone it stays a guess.
        let isSettled = estimator.isMeasured && establishedAt.map { now - $0 > Self.settling } ?? false
        condition.certainty = isSettled ? .settled : .guessed
        condition.isCongested = estimator.isCongested(at: now)
        condition.isBoundByLoss = estimator.isBoundByLoss
        condition.isSilent = estimator.phase == .silent
        condition.wrongFall = estimator.wrongFall
        condition.received = estimator.received
        condition.lossRate = estimator.lossRate
        condition.queueDelay = estimator.queueDelay
        condition.probeBytes = probeBytes
        return condition
    }

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
        isUsed = true
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
    public mutating func changed(at now: MonotonicTime) {
        guard isUsed else { return }
        estimator.pathChanged(at: now)
        refreshPacer(at: now)
    }

    /// What is wanted, for probing; nil `next` where nothing more is.
    public mutating func setDemand(allocated: Bitrate, next: Bitrate?, wanted: Bitrate, at now: MonotonicTime) {
        guard isUsed else { return }
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
        let isDraining = delay >= .milliseconds(150) && !estimator.isContested || estimator.isFlooded(at: now)
        let factor = isDraining ? 0.9 : delay < .milliseconds(75) ? Pacer.factor : 1.5
        // What policy sends beyond the estimate must not wait for ever (libwebrtc paces by the greater of both, too).
        pacer.setEstimate(
            estimator.isEstablished(at: now) ? max(estimator.estimate(at: now), allocated) : nil, factor: factor)
    }

    // MARK: - Sending

    /// Lets the pacer's time pass; once before packets of a turn.
    @inline(__always) public mutating func refill(at now: MonotonicTime) { pacer.refill(at: now) }
    /// Whether a video packet may leave now.
    @inline(__always) public var isOpen: Bool { pacer.isOpen }
    /// Whether a repeat may leave now: ahead of video, but not without end into a full queue.
    @inline(__always) public var isOpenForRepeats: Bool { pacer.isOpenForRepeats }

    /// A datagram of `size` bytes leaves, under the transport-wide number `sequence` where it has one.
    @inline(__always)
    public mutating func sent(_ sequence: UInt16?, size: Int, as purpose: Purpose, at now: MonotonicTime) {
        if let sequence {
            isUsed = true
            estimator.sent(sequence, size: size, at: now)
        }
        sentBytes &+= UInt64(size)
        pacer.spend(size)
        switch purpose {
        case .media: break
        case .retransmission: pacer.spendOnRepeat(size)
        case .probe: probeBytes &+= UInt64(size)
        }
    }

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

    // MARK: - Probing

    /// Bytes of the packet of padding that should leave now for a probe; nil for none.
    public func probePacketDue(at now: MonotonicTime) -> Int? {
        guard estimator.probeBytesDue(at: now) > 0 else { return nil }
        return min(max(estimator.probePacketBytes, Self.leastProbe), Self.mostProbe)
    }

    /// There is nothing to pad with.
    public mutating func abandonProbe() { estimator.abandonProbe() }

    /// What became of the probe that ended last; nil where none did since this was asked.
    public mutating func takeProbeOutcome() -> ProbeOutcome? { estimator.takeProbeOutcome() }

    // MARK: - Time

    /// When `advance` and then `nextWaiting` want to be called.
    public func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        isUsed ? min(estimator.nextDeadline, pacer.nextDeadline(at: now)) : .distantFuture
    }

    /// Plans probes and notices silence.
    public mutating func advance(to now: MonotonicTime) {
        guard isUsed, now >= estimator.nextDeadline else { return }
        estimator.advance(to: now)
        if estimator.phase == .silent { refreshPacer(at: now) }
    }

    // MARK: - Memory asked for ahead

    /// The pacer, and the beginning of the estimator: what `refill` and `sent` use.
    public static let hotBytes = 384

    /// Asks for the place that `sent` will fill.
    @inline(__always) public func prefetch(next sequence: UInt16) { estimator.prefetch(next: sequence) }

    /// Asks for the log of the packets that the next report tells of.
    @inline(__always) public func prefetchReported() { estimator.prefetchReported() }
}

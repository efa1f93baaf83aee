import CongestionControl
public import Primitives
public import RTP

/// The path to one subscriber: how much it carries and when packets may leave for it, derived from the packets sent and the subscriber's reports.
///
/// Nothing is known, and nothing limited, before a packet with a transport-wide number leaves or a REMB arrives, and while a subscriber that
/// negotiated feedback sends none, unless its receiver reports show losses.
public struct SendPath: ~Copyable {
    /// The kind of a sent datagram, for the path.
    public enum Purpose: Sendable { case media, retransmission, probe }

    // The fields that sending a packet touches come first: `hotBytes`.
    private var pacer = Pacer()
    private var estimator = BandwidthEstimator()
    private var clock = FeedbackClock()
    /// Feedback is expected, a REMB has arrived, or losses in receiver reports set a limit.
    private var isUsed = false
    /// Probe bytes sent.
    private var probeBytes: UInt64 = 0
    private var sentBytes: UInt64 = 0
    /// When the first measurement was available.
    private var establishedAt: MonotonicTime?
    /// The bitrate of video and audio by the last allocation.
    private var allocated = Bitrate.zero
    /// The last REMB: when, and the bytes sent by then.
    private var lastReceiverEstimate: (at: MonotonicTime, sentBytes: UInt64)?
    /// The last receiver reports that a rate was derived from, in the same way, and the packets that later reports covered.
    private var lastReports: (at: MonotonicTime, sentBytes: UInt64, packets: Int, lost: Double)?
    /// Losses in receiver reports have set a limit.
    private var isLimitedByReports = false
    private var reportedRoundTrip = ReportedRoundTrip()

    /// A subscriber that sends feedback does so within a second of the first packet.
    static let patience = TimeSpan.seconds(3)
    /// Feedback arrives after some 100 ms, a probe's answer as long after that, and a second one.
    private static let settling = TimeSpan.milliseconds(1_500)
    /// With fewer packets each is too large a share, and over a longer time the rate reveals little about the present.
    private static let leastReported = 20, longestReported = TimeSpan.seconds(10)
    /// Over a shorter time, the rate would be that of a frame and not of the stream.
    private static let leastMeasured = TimeSpan.milliseconds(250)
    /// Five packets of this size are a probe of a 250 kbit/s link that delays nothing by more than 50 ms.
    private static let leastProbe = 240
    /// Multiple of a link's rate at which bursts are sent to it once a probe has found that rate: the result may be a few percent low.
    private static let limitMargin = 1.1
    /// A size that fits any path.
    private static let mostProbe = 1_200

    public init() {}

    /// Bytes of memory besides the struct itself.
    public var memoryBytes: Int { estimator.memoryBytes + pacer.memoryBytes }

    // MARK: - What is known

    /// The subscriber negotiated feedback: the start value holds until it arrives.
    public mutating func expectFeedback() { isUsed = true }

    /// The bitrate that may be sent, headers included; nil while there is no reason for a limit.
    public func estimate(at now: MonotonicTime) -> Bitrate? {
        guard isUsed else { return nil }
        if estimator.isEstablished(at: now) { return estimator.estimate(at: now) }
        // Neither REMB nor receiver reports limit anything by themselves.
        guard let since = estimator.sendingSince else {
            return lastReceiverEstimate == nil && !isLimitedByReports ? estimator.estimate(at: now) : nil
        }
        return now - since > Self.patience ? nil : estimator.estimate(at: now)
    }

    /// The smoothed round trip by receiver reports of this path; nil without one in the last ten seconds.
    public func roundTrip(at now: MonotonicTime) -> TimeSpan? { reportedRoundTrip.smoothed(at: now) }

    /// Adds a measurement by a receiver report.
    public mutating func measured(roundTrip sample: TimeSpan, at now: MonotonicTime) {
        reportedRoundTrip.measured(sample, at: now)
    }

    /// The condition of the path now.
    public func condition(at now: MonotonicTime) -> PathCondition {
        guard isUsed else { return PathCondition() }
        var condition = PathCondition()
        condition.estimate = estimate(at: now)
        condition.isMeasured = estimator.isEstablished(at: now)
        // REMB measures what is sent, and would never rise for a video that is not: with only REMB it stays a guess.
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

    // MARK: - Messages

    /// Bytes of messages that may leave now next to media; nil: no limit.
    public mutating func messageAllowance(at now: MonotonicTime) -> Int? {
        isUsed ? estimator.messageAllowance(at: now) : nil
    }

    /// Data channels have sent this many bytes on the same path: they are charged to the video, so that both together keep to its rate. `counted`: how many
    /// count as messages; nil if nothing limits messages. With `moreWait`, returns when more messages may leave; nil: nothing limits them.
    public mutating func sentData(
        _ byteCount: Int, counted: Int?, moreWait: Bool, at now: MonotonicTime
    ) -> MonotonicTime? {
        sentBytes &+= UInt64(byteCount)
        pacer.spend(byteCount)
        return counted.map { estimator.sentMessages($0, moreWait: moreWait, at: now) }
    }

    // MARK: - Feedback

    /// Processes one transport-wide feedback packet; false when it is incomplete or reports impossible times.
    public mutating func receive(_ feedback: TransportFeedback, in datagram: RawSpan, at now: MonotonicTime) -> Bool {
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

    /// Applies the receiver's own estimate (REMB).
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

    /// Applies the losses in receiver reports about `packets`, of which `lost` did not arrive. They count if the receiver sends nothing better.
    public mutating func receiverReports(about packets: Int, lost: Double, at now: MonotonicTime) {
        guard packets > 0, !estimator.isMeasured, !estimator.isReliable, lastReceiverEstimate == nil else { return }
        guard let last = lastReports, now - last.at <= Self.longestReported else {
            return lastReports = (now, sentBytes, 0, 0)
        }
        let all = last.packets + packets, elapsed = now - last.at
        guard elapsed >= Self.leastMeasured, all >= Self.leastReported else {
            return lastReports = (last.at, last.sentBytes, all, last.lost + lost)
        }
        let rate = Double((sentBytes - last.sentBytes) * 8) / elapsed.seconds
        lastReports = (now, sentBytes, 0, 0)
        estimator.receiverReports(
            lost: (last.lost + lost) / Double(all), sent: .bitsPerSecond(Int64(rate)), at: now)
        guard estimator.isEstablished(at: now) else { return }
        isUsed = true
        isLimitedByReports = true
        refreshPacer(at: now)
    }

    /// The network path to the subscriber has changed.
    public mutating func changed(at now: MonotonicTime) {
        reportedRoundTrip = ReportedRoundTrip()
        lastReports = nil
        guard isUsed else { return }
        estimator.pathChanged(at: now)
        refreshPacer(at: now)
    }

    /// Whether every sent packet arrives unless the path has ended (TCP): then missing packets reveal nothing about it.
    public mutating func setReliable(_ isReliable: Bool) { estimator.isReliable = isReliable }

    /// More waits on this side of a TCP connection than its reader accepts.
    public mutating func backlogged(at now: MonotonicTime) {
        guard isUsed else { return }
        estimator.backlogged(at: now)
        refreshPacer(at: now)
    }

    /// Sets the demand, for probing; `video` is the videos' part of `allocated`, `next` is nil if no higher step is in demand.
    public mutating func setDemand(
        allocated: Bitrate, video: Bitrate, next: Bitrate?, wanted: Bitrate, at now: MonotonicTime
    ) {
        guard isUsed else { return }
        estimator.setDemand(allocated: allocated, video: video, next: next, wanted: wanted, at: now)
        self.allocated = allocated
        refreshPacer(at: now)
    }

    private mutating func refreshPacer(at now: MonotonicTime) {
        if establishedAt == nil, estimator.isEstablished(at: now) { establishedAt = now }
        // The start value limits layers, not bursts: a guess must not delay the first keyframe.
        // If packets already wait on the path, bursts only make them wait longer; if the queue is full, it must drain.
        let delay = estimator.queueDelay
        // A queue that competing traffic fills does not drain when we slow down.
        let isDraining = delay >= .milliseconds(150) && !estimator.isContested || estimator.isFlooded(at: now)
        // Bitrate that policy sends beyond the estimate must not wait for ever (libwebrtc also paces by the greater of both).
        let rate = max(estimator.estimate(at: now), allocated)
        var factor = isDraining ? 0.9 : delay < .milliseconds(75) ? Pacer.factor : 1.5
        // Packets sent faster than a link of known rate arrive no sooner, but fill its queue.
        if let limit = estimator.probedLimit {
            let share = Double(limit.bitsPerSecond) / Double(rate.bitsPerSecond)
            factor = min(factor, Self.limitMargin * max(share, 1))
        }
        pacer.setEstimate(
            estimator.isEstablished(at: now) ? rate : nil, delivered: estimator.acknowledgedRate, factor: factor)
    }

    // MARK: - Sending

    /// Advances the pacer's time; call once before the packets of a turn.
    @inline(__always) public mutating func refill(at now: MonotonicTime) { pacer.refill(at: now) }
    /// Whether a video packet may leave now.
    @inline(__always) public var isOpen: Bool { pacer.isOpen }
    /// Whether a retransmission may leave now: ahead of video, but not without limit into a full queue.
    @inline(__always) public var isOpenForRepeats: Bool { pacer.isOpenForRepeats }

    /// Records a sent datagram of `size` bytes, with the transport-wide number `sequence` if it has one.
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

    /// A packet was sent again with its former transport-wide number.
    public mutating func sentAgain(_ sequence: UInt16) { estimator.sentAgain(sequence) }

    /// Queues packet `sequence` of subscription `index`; false when there is no room.
    public mutating func wait(subscription index: Int, sequence: UInt32, size: Int) -> Bool {
        let value = UInt64(UInt32(truncatingIfNeeded: index)) << 32 | UInt64(sequence)
        return pacer.enqueue(.init(value: value, size: size))
    }

    /// A queued packet that may leave now.
    public mutating func nextWaiting(at now: MonotonicTime) -> (subscription: Int, sequence: UInt32)? {
        guard let token = pacer.next(at: now) else { return nil }
        return (Int(token.value >> 32), UInt32(truncatingIfNeeded: token.value))
    }

    /// Whether packets are queued.
    public var isWaiting: Bool { !pacer.isEmpty }

    // MARK: - Probing

    /// Size of the padding packet that should leave now for a probe; nil for none.
    public func probePacketDue(at now: MonotonicTime) -> Int? {
        guard estimator.probeBytesDue(at: now) > 0 else { return nil }
        return min(max(estimator.probePacketBytes, Self.leastProbe), Self.mostProbe)
    }

    /// Ends the probe: there is nothing to pad with.
    public mutating func abandonProbe() { estimator.abandonProbe() }

    /// The outcome of the last finished probe; nil if none finished since the last call.
    public mutating func consumeProbeOutcome() -> ProbeOutcome? { estimator.consumeProbeOutcome() }

    // MARK: - Time

    /// When to call `advance` and then `nextWaiting`.
    public func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        isUsed ? min(estimator.nextDeadline, pacer.nextDeadline(at: now)) : .distantFuture
    }

    /// Plans probes and detects silence.
    public mutating func advance(to now: MonotonicTime) {
        guard isUsed, now >= estimator.nextDeadline else { return }
        estimator.advance(to: now)
        if estimator.phase == .silent { refreshPacer(at: now) }
    }

    // MARK: - Prefetching

    // `mutating`: in place, see `BandwidthEstimator`.

    /// The pacer and the beginning of the estimator: what `refill` and `sent` use.
    public static let hotBytes = 384

    /// Prefetches the entry that `sent` will fill.
    @inline(__always) public mutating func prefetch(next sequence: UInt16) { estimator.prefetch(next: sequence) }

    /// Prefetches the log entries of the packets in the next report.
    @inline(__always) public mutating func prefetchReported() { estimator.prefetchReported() }
}

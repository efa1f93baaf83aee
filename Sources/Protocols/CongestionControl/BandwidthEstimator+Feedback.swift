public import Primitives

/// Summary of one feedback packet so far.
struct FeedbackDigest: Sendable {
    var received = 0
    /// Groups completed, each of which updated the delay trend.
    var groups = 0
    var newestArrival: Int64 = .min
    /// When the packet that arrived last was sent, nanoseconds.
    var sentOfNewest: Int64 = 0
}

extension BandwidthEstimator {
    /// Begins a feedback packet. Then call `report` for each of its packets in order, then `endFeedback`.
    public mutating func beginFeedback(at now: MonotonicTime) {
        digest = FeedbackDigest()
        if phase == .silent { wake(at: now) }
        if now - lastReported > Self.streamTimeout, lastReported != .zero {
            groups = ArrivalGroups()
            trend = DelayTrend()
            delivery = DeliveryWindow()
        }
        updateApplication(at: now)
    }

    /// Reports one packet: its arrival in microseconds of the receiver's clock, or nil if it has not arrived.
    public mutating func report(_ sequence: UInt16, arrival: Int64?) {
        guard let entry = packets.open(sequence) else { return }
        let sent = entry.pointee.sent / 1_000
        let size = Int(entry.pointee.size)
        let countsLoss = entry.pointee.sent >= ignoresLossBefore.nanoseconds
        guard let arrival else {
            guard entry.pointee.state != .lost, entry.pointee.state != .leftOut else { return }
            packets.close(entry, as: isReliable ? .leftOut : .lost)
            if isMeasured(entry.pointee) { measure.addLost() }
            guard !isReliable else { return }
            lost &+= 1
            delivery.addLost(size)
            if countsLoss { losses.add(size, sent: sent, isLost: true) }
            return
        }
        let wasLost = entry.pointee.state == .lost
        packets.close(entry, as: .received)
        received &+= 1
        if wasLost {
            lost &-= 1
            if isMeasured(entry.pointee) { measure.recovered() }
            if countsLoss { losses.recovered(sent: sent) }
            delivery.recovered(size)
        } else {
            losses.add(size, sent: sent, isLost: false)
        }
        digest.received += 1
        if arrival > digest.newestArrival {
            digest.newestArrival = arrival
            digest.sentOfNewest = entry.pointee.sent
        }
        acknowledged.add(size, arrival: arrival, isApplicationLimited: application.isLimited)
        guard entry.pointee.sent >= pathSince.nanoseconds else { return }
        delivery.add(size, sent: sent, arrival: arrival)
        queue.add(sent: sent, arrival: arrival, isContested: crossTraffic.isPresent)
        jitter.add(sent: sent, arrival: arrival)
        if isMeasured(entry.pointee) {
            measure.add(size, sent: sent, arrival: arrival)
        }
        // A probe fills the queue on purpose; until that has drained the slope reveals nothing new.
        guard
            entry.pointee.sent > probe.disturbsUntil.nanoseconds || entry.pointee.sent < probe.disturbsFrom.nanoseconds
        else { return }
        guard let deltas = groups.add(sent: sent, arrival: arrival) else { return }
        trend.add(deltas, arrival: arrival)
        digest.groups += 1
    }

    /// The packet `sequence` was sent again under its number, because the receiver lacks it: it counts as lost, and its late arrival reveals nothing about the
    /// path.
    public mutating func sentAgain(_ sequence: UInt16) {
        report(sequence, arrival: nil)
        if let entry = packets.open(sequence) { packets.close(entry, as: .free) }
    }

    /// Whether a packet belongs to the last probe.
    @inline(__always) private func isMeasured(_ entry: SentPackets.Entry) -> Bool {
        entry.probe != 0 && entry.probe == measure.id
    }

    /// Ends a feedback packet: updates the estimate.
    public mutating func endFeedback(at now: MonotonicTime) {
        lastFeedback = now
        packets.endReport()
        guard digest.received > 0 else { return }
        lastReported = now
        if phase == .untested {
            phase = .measuring
            planner.start(at: now)
        }
        trips.measured(.nanoseconds(max(now.nanoseconds - digest.sentOfNewest, 0)))
        // Without a new group the last verdict is outdated and changes nothing.
        var usage = digest.groups > 0 || trend.usage == .normal ? trend.usage : .under
        let rates = delivery.rates(besides: jitter.value)
        // A slope that jitter can cause is ignored, as long as there is no standing queue.
        if usage == .over, trend.growth < 2 * jitter.value,
            queue.standing < max(Self.standingQueue, 3 * jitter.value / 2)
        {
            usage = .normal
        }
        // A full queue has no slope any more: the undelivered packets reveal it.
        if queueWait > Self.flood, let rates, rates.arrived < 0.8 * rates.sent { usage = .over }
        let isCarried = isCarried(rates)
        // If others keep the queue full, only losses count (draft-ietf-rmcat-gcc-02 section 6).
        if crossTraffic.isPresent { usage = isCarried ? .normal : .over }
        // Messages yield before media does.
        let messagesYield = messages.update(
            .init(
                estimate: Double(estimate(at: now).bitsPerSecond), media: planner.demand.allocated,
                isMediaShort: planner.demand.next != nil, isGrowing: usage == .over, wait: queue.standing,
                jitter: jitter.value, isContested: crossTraffic.isPresent), at: now)
        if messagesYield, usage == .over { usage = .under }
        classifyQueue(usage, rates, isCarried: isCarried, at: now)
        if usage == .over { lastOveruse = now }
        let before = control.bitsPerSecond
        let result = measure.consumeResult(jitter: jitter.value)
        if case .rate(let rate) = result {
            applyProbe(rate, at: now)
        } else {
            if result == .unclear { repeatProbe(at: now) }
            control.update(
                .init(
                    usage: usage, acknowledged: acknowledged.bitsPerSecond, rates: rates,
                    queueDelay: crossTraffic.isPresent ? 0 : queueWait, roundTrip: roundTrip ?? .milliseconds(100),
                    isApplicationLimited: application.isLimited,
                    isCarried: isCarried), at: now)
        }
        if control.bitsPerSecond < 0.7 * before { planner.dropped(from: before, at: now) }
        if queue.newest < Self.drained, digest.groups > 0 { planner.drained(at: now) }
        losses.update(
            estimate: control.bitsPerSecond, delivered: acknowledged.bitsPerSecond,
            straying: jitter.value > ProbeState.mostJitter)
        plan(at: now)
    }

    /// Whether the path delivers what is sent. Too few packets do not disprove it, and neither does a short queue: jitter
    /// creates and removes one of that length.
    private func isCarried(_ rates: DeliveryWindow.Rates?) -> Bool {
        if crossTraffic.isPresent { return losses.averageLoss <= Self.maximumCrossTrafficLoss }
        return rates.map { $0.arrived >= 0.8 * $0.sent || queueWait < 100_000 } ?? true
    }

    /// Tracks whether the queue belongs to other traffic, or is none at all because the path has become longer.
    private mutating func classifyQueue(
        _ usage: DelayTrend.Usage, _ rates: DeliveryWindow.Rates?, isCarried: Bool, at now: MonotonicTime
    ) {
        crossTraffic.noteEstimate(control.bitsPerSecond, at: now)
        guard queue.standing >= Self.drained else { return crossTraffic.forget() }
        guard let delivered = rates?.arrived ?? acknowledged.bitsPerSecond else { return }
        if usage == .over, !crossTraffic.isKnown || !isCarried {
            crossTraffic.forget()
            crossTraffic.alarm(delivered: delivered)
        }
        crossTraffic.update(wait: queue.standing, delivered: delivered, at: now)
        guard crossTraffic.isPresent else { return constantWait.forget() }
        guard
            constantWait.update(
                standing: queue.standing, usual: queue.value, lossRate: losses.averageLoss, at: now)
        else { return }
        beginPath(since: now)
        planner.start(at: now)
    }

    /// Feedback resumes after an outage: start in the middle and let probes find the rest.
    private mutating func wake(at now: MonotonicTime) {
        phase = .measuring
        nextSilentStep = .distantFuture
        ignoresLossBefore = now
        packets.abandon(before: now - Self.patience)
        losses.forget()
        // It may be another path, for example after a phone has left a Wi-Fi network, and packets that the old path still delivered are reported only now. A
        // change that was reported meanwhile is more recent.
        beginPath(since: max(min(lastFeedback + Self.patience, now), pathSince))
        control.set(max(control.bitsPerSecond, rateBeforeSilence * 0.6), isProbe: false, at: now)
        planner.start(at: now)
    }

    /// Packets use another path from now on, or another mapping of the same one: what is known of queues and losses belongs to the old path. The rate stays
    /// until the new path shows more or less.
    public mutating func pathChanged(at now: MonotonicTime) {
        // What the receiver reported (REMB, receiver reports) was about the old path; without transport-wide feedback there is nothing else to forget.
        receiver = ReceiverLimit()
        reported = ReportedLoss()
        guard firstSent != nil else { return }
        ignoresLossBefore = now
        losses.forget()
        lossLift = LossLift()
        beginPath(since: now)
        lastOveruse = .zero
        endProbe(.unanswered)
        if phase == .measuring { planner.start(at: now) }
    }

    /// More data waits in front of the path than it carries, as its sender can see over TCP: reports about these packets arrive late, or not until they are
    /// read.
    public mutating func backlogged(at now: MonotonicTime) {
        guard phase == .measuring else { return }
        lastOveruse = now
        endProbe(.unanswered)
        control.bound(by: 0.85 * min(acknowledged.bitsPerSecond ?? .infinity, control.bitsPerSecond))
    }

    private mutating func beginPath(since moment: MonotonicTime) {
        pathSince = moment
        groups = ArrivalGroups()
        trend = DelayTrend()
        delivery = DeliveryWindow()
        queue = QueueDelay()
        jitter = ArrivalJitter()
        messages = DataPace()
        crossTraffic.forget()
        constantWait.forget()
        control.forgetLink()
    }

    private mutating func updateApplication(at now: MonotonicTime) {
        application.sent(bytesSinceUpdate, estimate: control.bitsPerSecond, at: now)
        bytesSinceUpdate = 0
    }
}

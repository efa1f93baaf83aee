public import Primitives

/// The current probe.
struct ProbeState: Sendable {
    /// Maximum bytes of a probe; more would be a burst that others notice.
    static let mostBytes = 60_000
    /// Minimum packets of a probe, so that spacing can be measured.
    static let leastPackets = 5
    /// Length of a probe …
    static let length = TimeSpan.milliseconds(15)
    /// … and, if the jitter exceeds `mostJitter` microseconds, this many packets and multiples of the jitter: the probe's own queue must be visible.
    static let packetsInJitter = 30
    private static let lengthInJitter: Int64 = 3
    private static let longest = TimeSpan.milliseconds(200)
    static let mostJitter: Int64 = 10_000
    /// Time for the answer besides the round trip: feedback arrives every 50 to 250 ms.
    static let patience = TimeSpan.milliseconds(500)

    private(set) var id: UInt8 = 0
    private(set) var rate = 0.0
    /// The result of the previous probe, if this one shall prove it.
    private(set) var claim: Double?
    private(set) var packets = 0
    private(set) var bytes = 0
    private(set) var bytesNeeded = 0
    private(set) var packetsNeeded = leastPackets
    private(set) var isSending = false
    /// Sending, or waiting for the answer.
    private(set) var isBusy = false
    private(set) var start = MonotonicTime.zero
    private(set) var deadline = MonotonicTime.distantFuture
    /// Packets sent between these moments are delayed by the probe's queue.
    private(set) var disturbsFrom = MonotonicTime.distantFuture
    private(set) var disturbsUntil = MonotonicTime.zero

    /// Begins to send at `rate`, to prove `claim` if there is one; delays vary by `jitter` microseconds.
    mutating func begin(rate: Double, claim: Double? = nil, jitter: Int64 = 0, at now: MonotonicTime) {
        // 0 means no probe in the log.
        id = id == 255 ? 1 : id + 1
        self.rate = rate
        self.claim = claim
        packets = 0
        bytes = 0
        let isLong = jitter > Self.mostJitter
        let length = isLong ? min(.microseconds(Self.lengthInJitter * jitter), Self.longest) : Self.length
        packetsNeeded = isLong ? Self.packetsInJitter : Self.leastPackets
        bytesNeeded = min(Int(rate * length.seconds / 8), Self.mostBytes)
        isSending = true
        isBusy = true
        start = now
        deadline = now + length + .milliseconds(200)
    }

    /// Counts a sent packet; true when it was the last one needed.
    mutating func note(_ size: Int) -> Bool {
        packets += 1
        bytes += size
        return packets >= Self.leastPackets && bytes >= bytesNeeded
    }

    mutating func sentAll(estimate: Double, roundTrip: TimeSpan, at now: MonotonicTime) {
        isSending = false
        deadline = now + roundTrip * 2 + Self.patience
        let drain = min(Double(bytes) * 8 / max(estimate, 1), 0.3)
        disturbsFrom = start
        disturbsUntil = now + .microseconds(Int64(drain * 1e6))
    }

    mutating func end() {
        isSending = false
        isBusy = false
        deadline = .distantFuture
    }

    /// When the next packet of the probe should leave.
    var nextDue: MonotonicTime {
        guard isSending, rate > 0 else { return .distantFuture }
        return start + .microseconds(Int64(Double(bytes) * 8e6 / rate))
    }

    var nextDeadline: MonotonicTime { isBusy ? min(nextDue, deadline) : .distantFuture }
    func isOver(at now: MonotonicTime) -> Bool { isBusy && now >= deadline }
}

extension BandwidthEstimator {
    /// Bytes of padding to send now for the current probe; 0 for none. Other packets sent meanwhile count too.
    public func probeBytesDue(at now: MonotonicTime) -> Int {
        guard probe.isSending, now >= probe.nextDue else { return 0 }
        return max(probe.bytesNeeded - probe.bytes, 1)
    }

    /// Bytes of each padding packet: all of one size, because the first packet is not counted in what arrives between it and the last, so that a
    /// larger one would make any path look slow.
    public var probePacketBytes: Int { max(probe.bytesNeeded / probe.packetsNeeded - Self.wireOverhead, 1) }

    /// Ends the probe: there is nothing to pad with.
    public mutating func abandonProbe() {
        endProbe(.abandoned)
        // Nor can an outage be tested for.
        if isTestingPath { packets.passAll() }
    }

    /// The outcome of the last finished probe; nil if none finished since the last call.
    public mutating func consumeProbeOutcome() -> ProbeOutcome? {
        defer { probeOutcome = nil }
        return probeOutcome
    }

    mutating func endProbe(_ outcome: ProbeOutcome) {
        if probe.isBusy { probeOutcome = outcome }
        probe.end()
        measure.giveUp()
    }

    mutating func noteProbe(_ size: Int, at now: MonotonicTime) -> UInt8 {
        if probe.note(size) {
            probe.sentAll(estimate: control.bitsPerSecond, roundTrip: roundTrip ?? .milliseconds(100), at: now)
        }
        return probe.id
    }

    mutating func plan(at now: MonotonicTime) {
        guard phase == .measuring, !probe.isBusy else { return }
        // A queue of other traffic does not drain when we wait. Nor does an outdated queue, our own or another's, reveal anything.
        let isCongested =
            !isStale(at: now)
            && (crossTraffic.isPresent
                ? control.bitsPerSecond >= crossTraffic.share
                : now - lastOveruse < .milliseconds(500) && lastOveruse != .zero && !planner.isRecovering
                    || queueWait > 60_000 && !(planner.isRecovering && queue.newest < Self.drained))
        let estimate = min(control.bitsPerSecond, losses.limit ?? .infinity)
        guard
            let rate = planner.plan(
                estimate: estimate, isCongested: isCongested, isContested: crossTraffic.isPresent, at: now)
        else { return }
        beginProbe(rate: min(rate, control.most), at: now)
    }

    mutating func beginProbe(rate: Double, claim: Double? = nil, at now: MonotonicTime) {
        probe.begin(rate: rate, claim: claim, jitter: jitter.value, at: now)
        let length = Int64(Double(probe.bytesNeeded) * 8e6 / rate)
        measure.begin(
            probe.id, packets: ProbeState.leastPackets, bytes: probe.bytesNeeded,
            length: probe.packetsNeeded > ProbeState.leastPackets ? length : nil)
    }

    /// The probe waited behind a frame, or for a radio: its result is useless.
    mutating func repeatProbe(at now: MonotonicTime) {
        endProbe(.unclear)
        planner.repeatSoon(at: now)
    }

    mutating func applyProbe(_ measured: Double, at now: MonotonicTime) {
        let before = control.bitsPerSecond
        let rate = probe.rate, claim = probe.claim
        if claim == nil, !crossTraffic.isPresent, control.capacity.isBeyond(measured) {
            endProbe(.unclear)
            return beginProbe(rate: rate, claim: measured, at: now)
        }
        let proven = min(measured, claim ?? measured)
        // A probe of some milliseconds may hit a pause of the other traffic.
        let result = crossTraffic.isPresent ? min(proven, max(crossTraffic.share, before)) : proven
        let estimate = min(before, losses.limit ?? .infinity)
        // While no video fits, only probes can show that losses have ended; while video is sent, its own losses reveal more.
        let isHeldByLosses = !planner.demand.hasVideo && estimate < before && result > estimate
        let lifts = isHeldByLosses && measure.lost == 0 && lossLift.mayLift(at: now)
        let raises = isHeldByLosses ? lifts : result > before
        endProbe(raises ? .raised : .confirmed)
        // The effect of jitter on a probe is not the link's limit.
        let isExact = probe.packetsNeeded == ProbeState.leastPackets
        if isExact { control.probed(result, of: rate) }
        if result > before {
            acknowledged.expectChange()
            control.set(result, isProbe: true, at: now)
            if raises { losses.forget() }
        } else if lifts {
            losses.lift(to: result, estimate: before)
        } else if result < 0.9 * rate, result > acknowledged.bitsPerSecond ?? 0 {
            // A probe may lower the estimate only if it reached the bottleneck, and then not below the delivered rate. A single one may have hit a burst; two
            // in a row that agree found the link's limit.
            if isExact, control.capacity.isCertain, !crossTraffic.isPresent {
                control.set(result, isProbe: true, at: now)
            } else if application.isLimited {
                control.set(max(result, 0.85 * before), isProbe: true, at: now)
            }
        }
        planner.succeeded(result, rate: rate, estimateBefore: lifts ? estimate : before, at: now)
    }
}

public import Primitives

/// The probe on its way.
struct ProbeState: Sendable {
    /// Bytes of a probe at most; more would be a burst that others feel.
    static let mostBytes = 60_000
    /// Packets of a probe at least, so that spacing can be measured.
    static let leastPackets = 5
    /// Length of a probe …
    static let length = TimeInterval.milliseconds(15)
    /// … and in so many packets and so many times the jitter where that is more than `mostJitter` microseconds: a queue of the probe's own must show.
    static let packetsInJitter = 30
    private static let lengthInJitter: Int64 = 3
    private static let longest = TimeInterval.milliseconds(200)
    static let mostJitter: Int64 = 10_000
    /// Time for the answer beside the round trip: feedback comes every 50 to 250 ms.
    static let patience = TimeInterval.milliseconds(500)

    private(set) var id: UInt8 = 0
    private(set) var rate = 0.0
    /// What the probe before showed, where this one is its proof.
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
    /// Packets sent between these moments find the probe's queue.
    private(set) var disturbsFrom = MonotonicTime.distantFuture
    private(set) var disturbsUntil = MonotonicTime.zero

    /// Begins to send at `rate`, as a proof of `claim` where there is one; delays stray by `jitter` microseconds.
    mutating func begin(rate: Double, claim: Double? = nil, jitter: Int64 = 0, at now: MonotonicTime) {
        // 0 stands for no probe in the log.
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

    /// One more packet left; true when it was the last that was needed.
    mutating func note(_ size: Int) -> Bool {
        packets += 1
        bytes += size
        return packets >= Self.leastPackets && bytes >= bytesNeeded
    }

    mutating func sentAll(estimate: Double, roundTrip: TimeInterval, at now: MonotonicTime) {
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
    /// Bytes of padding that should leave now for the probe on its way; 0 for none. Packets sent meanwhile count for it too.
    public func probeBytesDue(at now: MonotonicTime) -> Int {
        guard probe.isSending, now >= probe.nextDue else { return 0 }
        return max(probe.bytesNeeded - probe.bytes, 1)
    }

    /// Bytes of each packet of padding: all of one size, because the first packet is no part of what arrives between it and the last, so that a
    /// larger one would make any path look slow.
    public var probePacketBytes: Int { max(probe.bytesNeeded / probe.packetsNeeded - Self.wireOverhead, 1) }

    /// There is nothing to pad with.
    public mutating func abandonProbe() {
        endProbe(.abandoned)
        // Nor can it be asked whether there is an outage.
        if isAsking { packets.passAll() }
    }

    /// What became of the probe that ended last; nil where none did since this was asked.
    public mutating func takeProbeOutcome() -> ProbeOutcome? {
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
        // Another's queue does not end for our waiting, and what is out of date says nothing.
        let isCongested =
            foreign.isForeign
            ? control.bitsPerSecond >= foreign.share
            : !isStale(at: now)
                && (now - lastOveruse < .milliseconds(500) && lastOveruse != .zero && !planner.isRecovering
                    || queueWait > 60_000 && !(planner.isRecovering && queue.newest < Self.drained))
        let estimate = min(control.bitsPerSecond, losses.limit ?? .infinity)
        guard
            let rate = planner.plan(
                estimate: estimate, isCongested: isCongested, isContested: foreign.isForeign, at: now)
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

    /// The probe waited behind a picture, or for a radio: it says nothing.
    mutating func repeatProbe(at now: MonotonicTime) {
        endProbe(.unclear)
        planner.repeatSoon(at: now)
    }

    mutating func takeProbe(_ measured: Double, at now: MonotonicTime) {
        let before = control.bitsPerSecond
        let rate = probe.rate, claim = probe.claim
        if claim == nil, !foreign.isForeign, control.capacity.isBeyond(measured) {
            endProbe(.unclear)
            return beginProbe(rate: rate, claim: measured, at: now)
        }
        let proven = min(measured, claim ?? measured)
        // A probe of some milliseconds may fall into a pause of the others'.
        let result = foreign.isForeign ? min(proven, max(foreign.share, before)) : proven
        endProbe(result > before ? .raised : .confirmed)
        // What jitter makes of a probe is no end of the link.
        if probe.packetsNeeded == ProbeState.leastPackets { control.probed(result, of: rate) }
        // A probe may find less than is believed only where it found the bottleneck, and then not below what comes through.
        let floor = acknowledged.bitsPerSecond ?? 0
        if result > before {
            acknowledged.expectChange()
            control.set(result, isProbe: true, at: now)
            losses.forget()
        } else if result < 0.9 * rate, result > floor, application.isLimited {
            control.set(max(result, 0.85 * before), isProbe: true, at: now)
        }
        planner.succeeded(result, rate: rate, estimateBefore: before, at: now)
    }
}

public import Primitives

// Time that passes, and what it means that nothing is heard.

extension BandwidthEstimator {
    /// When `advance` wants to be called next.
    public var nextDeadline: MonotonicTime {
        guard firstSent != nil else { return .distantFuture }
        var calm = nextSilentStep
        if phase == .measuring {
            if !probe.isBusy { calm = min(calm, planner.nextDeadline) }
            if packets.bytesInFlight > 0 { calm = min(calm, silentSince + silenceLimit) }
        }
        return min(probe.nextDeadline, calm)
    }

    private var silenceLimit: TimeInterval { max(Self.patience, (roundTrip ?? .zero) * 3) }
    /// It was asked whether there is an outage, and nothing was heard since.
    var isAsking: Bool { phase == .measuring && lastAsked > lastFeedback }
    private var silentSince: MonotonicTime { max(lastFeedback, lastAsked) }

    /// Plans probes and notices silence. Afterwards ask `probeBytesDue`.
    public mutating func advance(to now: MonotonicTime) {
        if probe.isOver(at: now) { endProbe(.unanswered) }
        switch phase {
        case .untested: break
        case .measuring:
            guard packets.bytesInFlight > 0, now - silentSince >= silenceLimit else { return plan(at: now) }
            if isAsking || isFlowing(at: now) { fallSilent(at: now) } else { ask(at: now) }
        case .silent:
            guard now >= nextSilentStep else { return }
            control.bound(by: control.bitsPerSecond * 0.6)
            nextSilentStep = now + Self.silentStep
            guard now >= nextKnock, !probe.isBusy else { return }
            nextKnock = now + Self.streamTimeout
            beginProbe(rate: Self.knock, at: now)
        }
    }

    /// Packets that left well after the last report, and long enough ago to be answered; fewer may be lost one by one.
    private static let leastFlowing = 3

    /// Whether packets went on leaving after the last report came, so that only an outage explains that nothing is told of them. Where they ended
    /// about then, the last one or the last report may just be lost.
    private func isFlowing(at now: MonotonicTime) -> Bool {
        let limit = silenceLimit
        return packets.waiting(from: lastFeedback + limit / 2, to: now - limit / 4) >= Self.leastFlowing
    }

    /// Sends a few packets whose answer tells whether the path is there; their rate says nothing.
    private mutating func ask(at now: MonotonicTime) {
        lastAsked = now
        endProbe(.unanswered)
        probe.begin(rate: Self.knock, at: now)
    }

    private mutating func fallSilent(at now: MonotonicTime) {
        phase = .silent
        rateBeforeSilence = control.bitsPerSecond
        control.bound(by: control.bitsPerSecond * 0.5)
        nextSilentStep = now + Self.silentStep
        nextKnock = now + Self.streamTimeout
        planner.stop()
        endProbe(.unanswered)
    }
}

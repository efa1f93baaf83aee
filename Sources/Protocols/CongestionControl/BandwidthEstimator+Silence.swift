public import Primitives

// Timers, and the meaning of missing feedback.

extension BandwidthEstimator {
    /// When to call `advance` next.
    public var nextDeadline: MonotonicTime {
        guard firstSent != nil else { return .distantFuture }
        var calm = nextSilentStep
        if phase == .measuring {
            if !probe.isBusy { calm = min(calm, planner.nextDeadline) }
            if packets.bytesInFlight > 0 { calm = min(calm, silentSince + silenceLimit) }
        }
        return min(probe.nextDeadline, calm)
    }

    private var silenceLimit: TimeSpan { max(Self.patience, (roundTrip ?? .zero) * 3) }
    /// An outage is being tested for, and no feedback has arrived since.
    var isTestingPath: Bool { phase == .measuring && lastPathTest > lastFeedback }
    private var silentSince: MonotonicTime { max(lastFeedback, lastPathTest) }

    /// Plans probes and detects silence. Call `probeBytesDue` afterwards.
    public mutating func advance(to now: MonotonicTime) {
        if probe.isOver(at: now) { endProbe(.unanswered) }
        switch phase {
        case .untested: break
        case .measuring:
            guard packets.bytesInFlight > 0, now - silentSince >= silenceLimit else { return plan(at: now) }
            if isTestingPath || isFlowing(at: now) { fallSilent(at: now) } else { testPath(at: now) }
        case .silent:
            guard now >= nextSilentStep else { return }
            control.bound(by: control.bitsPerSecond * 0.6)
            nextSilentStep = now + Self.silentStep
            guard now >= nextPathTest, !probe.isBusy else { return }
            nextPathTest = now + Self.streamTimeout
            beginProbe(rate: Self.pathTestRate, at: now)
        }
    }

    /// Packets sent well after the last report, and long enough ago to be reported; fewer may be lost individually.
    private static let leastFlowing = 3

    /// Whether packets were still sent after the last report arrived, so that only an outage explains the missing reports. If they stopped
    /// at about that time, just the last packet or the last report may be lost.
    private func isFlowing(at now: MonotonicTime) -> Bool {
        let limit = silenceLimit
        return packets.waiting(from: lastFeedback + limit / 2, to: now - limit / 4) >= Self.leastFlowing
    }

    /// Sends a few packets whose answer shows whether the path works; their rate reveals nothing.
    private mutating func testPath(at now: MonotonicTime) {
        lastPathTest = now
        endProbe(.unanswered)
        probe.begin(rate: Self.pathTestRate, at: now)
    }

    private mutating func fallSilent(at now: MonotonicTime) {
        phase = .silent
        rateBeforeSilence = control.bitsPerSecond
        control.bound(by: control.bitsPerSecond * 0.5)
        nextSilentStep = now + Self.silentStep
        nextPathTest = now + Self.streamTimeout
        planner.stop()
        endProbe(.unanswered)
    }
}

import Primitives

/// Decides how a lane continues after requests that were not accepted.
struct WebhookBackoff {
    /// The first wait; each further one is twice as long.
    static let first = TimeSpan.seconds(1)
    /// The longest wait: a receiver that has recovered gets events within a minute.
    static let longest = TimeSpan.seconds(60)
    /// A webhook whose receiver accepts nothing for this long is parked until somebody sets it again. If the receiver accepts other events meanwhile, only this
    /// one is dropped.
    static let parking = TimeSpan.seconds(86_400)
    /// After this many refusals of one event, a receiver that responds is taken at its word.
    static let refusals = 10

    enum Step: Hashable {
        /// Accepted: continue with the next event.
        case next
        /// Refused for good, or not accepted for too long while others were: continue with the next event, without this one.
        case giveUp
        /// Repeat the same request after this time.
        case again(after: TimeSpan)
        case park
    }

    private var failures = 0
    /// Those that were refusals.
    private var refused = 0
    private var failingSince: MonotonicTime?
    private var lastFailure: MonotonicTime?

    /// The next step after `outcome`. `accepted`: when the receiver last accepted an event on any lane; `jitter` from 0 to 1 spreads the retries of waiting
    /// lanes.
    mutating func step(
        after outcome: WebhookOutcome, at now: MonotonicTime, accepted: MonotonicTime? = nil, jitter: Double
    ) -> Step {
        if case .answered(200..<300) = outcome {
            self = WebhookBackoff()
            return .next
        }
        failures += 1
        let since = failingSince ?? now
        let before = lastFailure ?? now
        (failingSince, lastFailure) = (since, now)
        if Self.isRefusal(outcome) { refused += 1 }
        // Failures for other reasons say nothing about this event: one refusal after an outage is no reason to lose it.
        if refused >= Self.refusals, Self.isRefusal(outcome) {
            self = WebhookBackoff()
            return .giveUp
        }
        if now - since >= Self.parking {
            guard let accepted, now - accepted < Self.parking else { return .park }
            // Since the last try: a receiver that worked earlier in the day may be down now, and gets the event later.
            if accepted >= before {
                self = WebhookBackoff()
                return .giveUp
            }
        }
        let doubled = Self.first * Int64(1 << min(failures - 1, 10))
        let wait = min(doubled, Self.longest)
        return .again(after: wait / 2 + .milliseconds(Int64(Double(wait.milliseconds) / 2 * jitter)))
    }

    /// Whether the receiver works but rejects the event: not one that is overloaded, slow or broken.
    private static func isRefusal(_ outcome: WebhookOutcome) -> Bool {
        guard case .answered(let status) = outcome else { return false }
        return (400..<500).contains(status) && status != 408 && status != 429
    }
}

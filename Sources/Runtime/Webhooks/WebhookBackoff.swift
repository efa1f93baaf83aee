import Primitives

/// How a lane goes on after requests that were not accepted.
struct WebhookBackoff {
    /// The first wait; each further one is twice as long.
    static let first = TimeInterval.seconds(1)
    /// The longest wait: a receiver that is back is served within a minute.
    static let longest = TimeInterval.seconds(60)
    /// A receiver that accepts nothing for so long is left alone until somebody sets it again. One that accepts others' events has something against this one.
    static let parking = TimeInterval.seconds(86_400)
    /// So many refusals of one event by a receiver that answers are meant for good.
    static let refusals = 10

    enum Step: Hashable {
        /// Accepted: the next event.
        case next
        /// Refused for good, or not accepted for too long while others were: the next event, without this one.
        case giveUp
        /// The same again after this time.
        case again(after: TimeInterval)
        case park
    }

    private var failures = 0
    /// Those that were refusals.
    private var refused = 0
    private var failingSince: MonotonicTime?
    private var lastFailure: MonotonicTime?

    /// What to do after `outcome`. `accepted`: when the receiver last accepted an event of any lane; `jitter` from 0 to 1 keeps those who wait from coming back together.
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
        // What failed for other reasons says nothing about this event: one refusal after an outage is no reason to lose it.
        if refused >= Self.refusals, Self.isRefusal(outcome) {
            self = WebhookBackoff()
            return .giveUp
        }
        if now - since >= Self.parking {
            guard let accepted, now - accepted < Self.parking else { return .park }
            // Since the last try: a receiver that was there earlier in the day may be away now, and gets it later.
            if accepted >= before {
                self = WebhookBackoff()
                return .giveUp
            }
        }
        let doubled = Self.first * Int64(1 << min(failures - 1, 10))
        let wait = min(doubled, Self.longest)
        return .again(after: wait / 2 + .milliseconds(Int64(Double(wait.milliseconds) / 2 * jitter)))
    }

    /// A receiver that is there and wants something else: not one that is overloaded, slow or broken.
    private static func isRefusal(_ outcome: WebhookOutcome) -> Bool {
        guard case .answered(let status) = outcome else { return false }
        return (400..<500).contains(status) && status != 408 && status != 429
    }
}

import Primitives

/// How a lane goes on after requests that were not accepted.
struct WebhookBackoff {
    /// The first wait; each further one is twice as long.
    static let first = TimeInterval.seconds(1)
    /// The longest wait: a receiver that is back is served within a minute.
    static let longest = TimeInterval.seconds(60)
    /// A receiver that accepts nothing for so long is left alone until somebody sets it again.
    static let parking = TimeInterval.seconds(86_400)
    /// So many refusals of one event by a receiver that answers are meant for good.
    static let refusals = 10

    enum Step: Hashable {
        /// Accepted: the next event.
        case next
        /// Refused for good: the next event, without this one.
        case giveUp
        /// The same again after this time.
        case again(after: TimeInterval)
        case park
    }

    private var failures = 0
    /// Those that were refusals.
    private var refused = 0
    private var failingSince: MonotonicTime?

    /// What to do after `outcome`; `jitter` from 0 to 1 keeps those who wait from coming back together.
    mutating func step(after outcome: WebhookOutcome, at now: MonotonicTime, jitter: Double) -> Step {
        if case .answered(200..<300) = outcome {
            self = WebhookBackoff()
            return .next
        }
        failures += 1
        let since = failingSince ?? now
        failingSince = since
        if Self.isRefusal(outcome) { refused += 1 }
        // What failed for other reasons says nothing about this event: one refusal after an outage is no reason to lose it.
        if refused >= Self.refusals, Self.isRefusal(outcome) {
            self = WebhookBackoff()
            return .giveUp
        }
        guard now - since < Self.parking else { return .park }
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

/// So many in a second, evenly, and some at once. One moment is all its state (the generic cell rate algorithm, ITU-T I.371).
public struct RateLimit: Sendable {
    /// When the last of those that were accepted would have come if they had come evenly.
    private var due = MonotonicTime.zero

    public init() {}

    /// Accepts `count` of them, one for each `interval` and `burst` at once; false, and nothing is counted, where there have been too many.
    public mutating func take(
        _ count: Int = 1, every interval: TimeInterval, atOnce burst: Int, at now: MonotonicTime
    ) -> Bool {
        let next = max(due, now) + interval * Int64(count)
        guard next - now <= interval * Int64(burst) else { return false }
        due = next
        return true
    }
}

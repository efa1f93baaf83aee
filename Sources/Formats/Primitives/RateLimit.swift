/// So many in a second, evenly, and some at once. One moment is all its state (the generic cell rate algorithm, ITU-T I.371).
public struct RateLimit: Sendable {
    /// When the last of those that were accepted would have come if they had come evenly.
    private var due = MonotonicTime.zero

    public init() {}

    /// Accepts `count` of them, one for each `interval` and `burst` at once; false, and nothing is counted, where there have been too many.
    public mutating func accept(
        _ count: Int = 1, every interval: TimeInterval, atOnce burst: Int, at now: MonotonicTime
    ) -> Bool {
        let next = max(due, now) + interval * Int64(count)
        guard next - now <= interval * Int64(burst) else { return false }
        due = next
        return true
    }

    /// Whether nothing is used up of what may come at once.
    public func isWhole(at now: MonotonicTime) -> Bool { due <= now }

    /// At least as much is used up as of `other`.
    public mutating func usesUp(asMuchAs other: RateLimit) { due = max(due, other.due) }

    /// Counts `count` more although there may have been too many: those to come wait until there is room for them, too.
    public mutating func add(_ count: Int, every interval: TimeInterval, at now: MonotonicTime) {
        due = max(due, now) + interval * Int64(count)
    }
}

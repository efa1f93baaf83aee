/// A limit on an even rate that allows a burst. Its only state is one moment (the generic cell rate algorithm, ITU-T I.371).
public struct RateLimit: Sendable {
    /// When the last accepted one would have arrived if all had arrived evenly.
    private var due = MonotonicTime.zero

    public init() {}

    /// Accepts `count` more, one per `interval` and `burst` at once; false, and nothing is counted, if there have been too many.
    public mutating func accept(
        _ count: Int = 1, every interval: TimeSpan, atOnce burst: Int, at now: MonotonicTime
    ) -> Bool {
        let next = max(due, now) + interval * Int64(count)
        guard next - now <= interval * Int64(burst) else { return false }
        due = next
        return true
    }

    /// Whether the whole burst is still available.
    public func isWhole(at now: MonotonicTime) -> Bool { due <= now }

    /// Uses up at least as much as is used up in `other`.
    public mutating func usesUp(asMuchAs other: RateLimit) { due = max(due, other.due) }

    /// Counts `count` more although there may have been too many: later ones wait until there is room for these, too.
    public mutating func add(_ count: Int, every interval: TimeSpan, at now: MonotonicTime) {
        due = max(due, now) + interval * Int64(count)
    }
}

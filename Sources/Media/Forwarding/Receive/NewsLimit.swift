internal import Primitives

/// Limits how often a state that a publisher can change with each packet is announced: only the newest one, once per interval. Every member of the room gets
/// each announcement, and the control plane carries those of all rooms.
struct NewsLimit {
    /// Short enough that nobody notices the delay, and long enough for a room of thousands.
    static let interval = TimeSpan.milliseconds(250)

    private var last: MonotonicTime?
    private var isPending = false

    /// When a change that was held back is due.
    var due: MonotonicTime {
        guard isPending, let last else { return .distantFuture }
        return last + Self.interval
    }

    /// It changed at `now`; returns whether that is announced at once.
    mutating func changed(at now: MonotonicTime) -> Bool {
        isPending = true
        guard let last, now - last < Self.interval else {
            announced(at: now)
            return true
        }
        return false
    }

    /// Whether a change that was held back is announced at `now`.
    mutating func consumeDue(at now: MonotonicTime) -> Bool {
        guard isPending, now >= due else { return false }
        announced(at: now)
        return true
    }

    private mutating func announced(at now: MonotonicTime) {
        last = now
        isPending = false
    }
}

import Primitives

/// A token bucket over the requests of one socket.
struct RequestBudget: Sendable {
    /// Far above the churn of a large call.
    static let perSecond: Int64 = 200
    static let burst: Int64 = 400
    /// A client that goes on this long after being told is not listening.
    static let patience = 400

    private var credit = burst * 1_000
    private var last: MonotonicTime
    private var refused = 0

    init(at now: MonotonicTime) { last = now }

    enum Verdict: Sendable, Hashable { case go, refuse, close }

    /// What a request of this many bytes counts: a description of 256 KiB costs the room service as much as 65 pings.
    private static func cost(_ bytes: Int) -> Int64 { 1_000 * Int64(1 + bytes / 4_096) }

    /// Takes one request of `bytes` bytes off the budget.
    mutating func take(_ bytes: Int, at now: MonotonicTime) -> Verdict {
        let elapsed = max(0, (now - last).milliseconds)
        if elapsed > 0 {
            credit = min(Self.burst * 1_000, credit + min(elapsed, 60_000) * Self.perSecond)
            last = now
        }
        let cost = Self.cost(bytes)
        guard credit >= cost else {
            refused += 1
            return refused > Self.patience ? .close : .refuse
        }
        credit -= cost
        refused = 0
        return .go
    }
}

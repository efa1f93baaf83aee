public import Primitives

/// How many requests one socket may send.
public struct RequestBudget: Sendable {
    /// 200 per second, far above the churn of a large call …
    private static let interval = TimeSpan.milliseconds(5)
    /// … and this many at once.
    public static let burst = 400
    /// A client that continues for this many requests after it was refused ignores refusals; each request within the budget makes up for one beyond it.
    public static let patience = 400

    private var limit = RateLimit()
    /// The budget of long replies, by their length.
    private var replies = RateLimit()
    private var refused = 0

    /// A full budget.
    public init() {}

    /// What to do with a request: carry it out, refuse it, or close the socket.
    public enum Verdict: Sendable, Hashable { case go, refuse, close }

    /// The cost of a request of this many bytes: a description of 256 KiB costs the room service as much as 65 pings.
    private static func cost(_ bytes: Int) -> Int { 1 + bytes / bytesPerRequest }
    private static let bytesPerRequest = 4_096

    /// Charges one request of `bytes` bytes to the budget.
    public mutating func spend(_ bytes: Int, at now: MonotonicTime) -> Verdict {
        let verdict = charge(Self.cost(bytes), at: now)
        if verdict == .go { refused = max(0, refused - 1) }
        return verdict
    }

    /// Charges the last request for so many more: it is carried out only if these are within the budget, too.
    public mutating func spendMore(_ count: Int, at now: MonotonicTime) -> Verdict {
        count > 0 ? charge(count, at: now) : .go
    }

    /// Whether a request may have a long reply: not while earlier replies, at 4 KiB for each request that may be sent, exceed the budget.
    public mutating func allowsLongReply(at now: MonotonicTime) -> Bool {
        replies.accept(0, every: Self.interval, atOnce: Self.burst, at: now)
    }

    /// Charges a reply of so many bytes, which counts against long replies only: in a room of thousands one reply is longer than a whole burst of requests, and
    /// its reader could otherwise send nothing for seconds.
    public mutating func addReply(_ bytes: Int, at now: MonotonicTime) {
        replies.add(bytes / Self.bytesPerRequest, every: Self.interval, at: now)
    }

    private mutating func charge(_ cost: Int, at now: MonotonicTime) -> Verdict {
        guard limit.accept(cost, every: Self.interval, atOnce: Self.burst, at: now) else {
            refused += 1
            return refused > Self.patience ? .close : .refuse
        }
        return .go
    }
}

public import Primitives

/// How many requests one socket may send.
public struct RequestBudget: Sendable {
    /// 200 in a second, far above the churn of a large call …
    private static let interval = TimeInterval.milliseconds(5)
    /// … and so many at once.
    public static let burst = 400
    /// A client that goes on this long after being told is not listening; each request that was in time counts for one that was not.
    public static let patience = 400

    private var limit = RateLimit()
    /// Of long replies, by their length.
    private var replies = RateLimit()
    private var refused = 0

    /// A full budget.
    public init() {}

    /// What to do with a request: carry it out, refuse it, or close the socket.
    public enum Verdict: Sendable, Hashable { case go, refuse, close }

    /// What a request of this many bytes counts: a description of 256 KiB costs the room service as much as 65 pings.
    private static func cost(_ bytes: Int) -> Int { 1 + bytes / bytesPerRequest }
    private static let bytesPerRequest = 4_096

    /// Charges one request of `bytes` bytes to the budget.
    public mutating func spend(_ bytes: Int, at now: MonotonicTime) -> Verdict {
        let verdict = charge(Self.cost(bytes), at: now)
        if verdict == .go { refused = max(0, refused - 1) }
        return verdict
    }

    /// The request that was charged last stands for so many more: it is carried out only if they are in time, too.
    public mutating func spendMore(_ count: Int, at now: MonotonicTime) -> Verdict {
        count > 0 ? charge(count, at: now) : .go
    }

    /// Whether a request may be answered at any length: not while those before, of 4 KiB for each request that may be sent, are beyond the budget.
    public mutating func allowsLongReply(at now: MonotonicTime) -> Bool {
        replies.accept(0, every: Self.interval, atOnce: Self.burst, at: now)
    }

    /// A request was answered with so many bytes, which count against long replies alone: in a room of thousands one is longer than all requests at once, and its
    /// reader could send nothing for seconds.
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

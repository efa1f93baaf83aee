/// The times from participants' joins until an event: their first peer connection was up, or a step was reached.
public struct ConnectTimes: Sendable, Hashable {
    /// Upper bounds of the buckets in milliseconds; larger values are counted in one more. On a good network it takes a few round trips; after a second people
    /// notice, after ten they have given up.
    public static let boundsMilliseconds: [Int64] = [50, 100, 200, 350, 500, 750, 1_000, 2_000, 3_000, 5_000, 10_000]

    /// Participants by bucket, with one bucket more than there are bounds.
    public private(set) var counts = [UInt64](repeating: 0, count: boundsMilliseconds.count + 1)
    public private(set) var totalMilliseconds: Int64 = 0

    /// None yet.
    public init() {}

    /// Adds a participant.
    public mutating func add(_ milliseconds: Int64) {
        counts[Self.boundsMilliseconds.firstIndex { milliseconds <= $0 } ?? Self.boundsMilliseconds.count] += 1
        totalMilliseconds += milliseconds
    }
}

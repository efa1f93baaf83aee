/// How long packets wait in queues: the one-way delay above the least of the last 10 to 20 seconds (as LEDBAT, RFC 6817 section 4.2).
///
/// The slope of `DelayTrend` tells that queues grow, not how long they are; a standing queue has no slope.
struct QueueDelay: Sendable {
    private static let half: Int64 = 10_000_000

    private var least: Int64 = .max
    private var leastBefore: Int64 = .max
    private var turned: Int64 = 0
    /// Smoothed, microseconds.
    private(set) var value: Int64 = 0
    /// Of the newest packet, microseconds.
    private(set) var newest: Int64 = 0

    init() {}

    /// Takes one packet; microseconds, each on its own clock.
    mutating func take(sent: Int64, arrival: Int64) {
        let delay = arrival - sent
        if arrival - turned > Self.half || arrival < turned {
            turned = arrival
            leastBefore = least
            least = delay
        }
        least = min(least, delay)
        newest = delay - min(least, leastBefore)
        // A path that became shorter or a clock that jumped shows as a step down, and the floor follows at once.
        value += (newest - value) / 8
    }
}

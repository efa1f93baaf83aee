/// How long packets wait in queues: the one-way delay above the minimum of the last 10 to 20 seconds (as LEDBAT, RFC 6817 section 4.2).
///
/// The slope of `DelayTrend` shows that queues grow, not how long they are; a standing queue has no slope.
struct QueueDelay: Sendable {
    private static let half: Int64 = 10_000_000
    private static let halfContested: Int64 = 60_000_000
    /// A packet that arrived this much earlier than those before it did not overtake them: the receiver's clock jumped.
    private static let jump: Int64 = 1_000_000

    private var least: Int64 = .max
    private var leastBefore: Int64 = .max
    private var turned: Int64 = 0
    /// Smoothed, microseconds.
    private(set) var value: Int64 = 0
    /// Of the newest packet, microseconds.
    private(set) var newest: Int64 = 0

    /// The minimum wait of the last quarter to half second, in two halves.
    private var low: Int64 = 0
    private var lowBefore: Int64 = 0
    private var lowTurned: Int64 = 0
    private static let moment: Int64 = 250_000

    init() {}

    /// The standing queue, microseconds: the minimum wait of the last quarter to half second, by which CoDel judges a queue, too (RFC 8289 section 3).
    /// Waits that jitter and single frames cause and remove are not a queue.
    var standing: Int64 { min(low, lowBefore) }

    /// The queue's wait if delays vary by `jitter`, microseconds: the smoothed wait less the effect of jitter, but at least the standing wait.
    func value(besides jitter: Int64) -> Int64 { max(value - 2 * jitter, min(standing, value)) }

    /// Adds one packet; microseconds, each on its own clock.
    /// While others keep the queue full (`isContested`) its floor is not visible, and is remembered for longer.
    mutating func add(sent: Int64, arrival: Int64, isContested: Bool) {
        let delay = arrival - sent
        if arrival - turned > (isContested ? Self.halfContested : Self.half) || turned - arrival > Self.jump {
            turned = arrival
            leastBefore = least
            least = delay
        }
        least = min(least, delay)
        newest = delay - min(least, leastBefore)
        if arrival - lowTurned > Self.moment || lowTurned - arrival > Self.jump {
            lowBefore = arrival - lowTurned > 4 * Self.moment ? newest : low
            lowTurned = arrival
            low = newest
        }
        low = min(low, newest)
        // A path that became shorter or a clock that jumped shows as a step down, and the floor follows at once.
        value += (newest - value) / 8
    }
}

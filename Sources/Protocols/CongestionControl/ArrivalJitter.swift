/// How far delays vary without any queue, measured by packets that overtake others: a queue never reorders packets, however it grows and drains, and
/// what does reorder them (several paths, a radio's schedulers and retransmissions) delays only some of them.
///
/// Jitter that keeps the order, as of a link that serves in turns, is not distinguished from a queue here.
struct ArrivalJitter: Sendable {
    /// Number of packets averaged.
    private static let memory = 100.0
    /// Delays spread evenly over 120 ms put packets 22 to 33 ms behind later ones on average, at 80 to 180 packets per second, and are 60 ms above the
    /// minimum on average.
    private static let scale = 2.0
    /// Maximum time by which one packet counts as overtaken, microseconds.
    private static let most: Int64 = 200_000

    private var lastSent: Int64 = .min
    private var lastArrival: Int64 = .min
    private var newestArrival: Int64 = .min
    private var count = 0.0
    private var mean = 0.0

    init() {}

    /// How much the average delay exceeds the shortest because of jitter, microseconds.
    var value: Int64 { Int64(mean * Self.scale) }

    /// Adds one packet; microseconds, each on its own clock.
    mutating func add(sent: Int64, arrival: Int64) {
        if lastSent == .min { (lastSent, lastArrival, newestArrival) = (sent, arrival, arrival) }
        // A packet reported late arrived late: packets sent after it were processed before.
        let behind = sent >= lastSent ? newestArrival - arrival : arrival - lastArrival
        newestArrival = max(newestArrival, arrival)
        if sent >= lastSent { (lastSent, lastArrival) = (sent, arrival) }
        // A jump of the receiver's clock overtakes nothing.
        guard behind <= Self.most else {
            newestArrival = arrival
            return
        }
        count = min(count + 1, Self.memory)
        mean += (Double(max(behind, 0)) - mean) / count
    }
}

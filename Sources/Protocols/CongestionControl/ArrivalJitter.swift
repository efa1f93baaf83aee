/// How far delays stray without any queue, told by packets that overtake others: a queue never lets one pass another, however it grows and drains, and
/// whatever lets them pass (several paths, a radio's schedulers and repeats) delays some and not others.
///
/// Jitter that keeps the order, as of a link that serves in turns, is not told from a queue here.
struct ArrivalJitter: Sendable {
    /// It is the mean of so many packets.
    private static let memory = 100.0
    /// Delays evenly spread over 120 ms put packets 22 to 33 ms behind later ones on average, at 80 to 180 packets a second, and are 60 ms above the
    /// least on average.
    private static let scale = 2.0
    /// One packet counts as overtaken by no more than this, microseconds.
    private static let most: Int64 = 200_000

    private var lastSent: Int64 = .min
    private var lastArrival: Int64 = .min
    private var newestArrival: Int64 = .min
    private var count = 0.0
    private var mean = 0.0

    init() {}

    /// How much longer than the shortest delay the average one is for it, microseconds.
    var value: Int64 { Int64(mean * Self.scale) }

    /// Takes one packet; microseconds, each on its own clock.
    mutating func take(sent: Int64, arrival: Int64) {
        if lastSent == .min { (lastSent, lastArrival, newestArrival) = (sent, arrival, arrival) }
        // What is reported late came late: those that left after it have been looked at.
        let behind = sent >= lastSent ? newestArrival - arrival : arrival - lastArrival
        newestArrival = max(newestArrival, arrival)
        if sent >= lastSent { (lastSent, lastArrival) = (sent, arrival) }
        // A receiver's clock that jumped overtakes nothing.
        guard behind <= Self.most else {
            newestArrival = arrival
            return
        }
        count = min(count + 1, Self.memory)
        mean += (Double(max(behind, 0)) - mean) / count
    }
}

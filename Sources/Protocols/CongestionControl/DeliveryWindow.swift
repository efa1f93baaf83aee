/// The send rate and the arrival rate of the last packets: what a full bottleneck delivers, within a quarter of a second.
///
/// Not part of Google's congestion control, whose smoothed rate needs seconds to follow a link that became six times slower. While queues grow the
/// bottleneck is continuously busy, so the rate of the last arrivals is its capacity. Conversely, if packets arrive as fast as they
/// were sent, the link carries the load, and a slope of the delay is no reason to go below it.
struct DeliveryWindow: Sendable {
    struct Rates: Sendable {
        /// Bits per second.
        var sent: Double
        var arrived: Double
    }

    /// 16 bytes: the window is read at each feedback, mostly out of cold memory. Only differences of times are used, so the wrap after
    /// half an hour is harmless.
    private struct Packet {
        var sent: Int32 = 0
        var arrival: Int32 = 0
        var size: Int32 = 0
        /// Bytes sent before it that were lost.
        var lost: Int32 = 0
    }

    private static let capacity = 64
    /// Length of the window in microseconds.
    private static let span: Int32 = 250_000
    /// Maximum length if packets are rare.
    private static let longest: Int32 = 500_000
    /// Over a shorter time a rate is noise.
    private static let least: Int32 = 30_000
    private static let leastPackets = 6

    private var packets = InlineArray<64, Packet>(repeating: Packet())
    private var count = 0
    private var position = 0
    private var lost = 0

    init() {}

    mutating func addLost(_ size: Int) { lost += size }

    /// A packet reported as lost arrived after all.
    mutating func recovered(_ size: Int) {
        if lost >= size { return lost -= size }
        // Subscripting the array itself would copy all of it.
        var packets = packets.mutableSpan
        var back = 1
        while back <= count {
            let index = (position + 2 * Self.capacity - back) % Self.capacity
            if packets[index].lost >= Int32(clamping: size) {
                packets[index].lost -= Int32(clamping: size)
                return
            }
            back += 1
        }
    }

    mutating func add(_ size: Int, sent: Int64, arrival: Int64) {
        packets[position] = Packet(
            sent: Int32(truncatingIfNeeded: sent), arrival: Int32(truncatingIfNeeded: arrival),
            size: Int32(truncatingIfNeeded: size), lost: Int32(clamping: lost))
        lost = 0
        position = (position + 1) % Self.capacity
        count = min(count + 1, Self.capacity)
    }

    /// The rates over the last quarter second, with delays varying by `jitter` microseconds; nil while there are too few packets.
    func rates(besides jitter: Int64) -> Rates? {
        guard count >= Self.leastPackets else { return nil }
        // Subscripting the array itself would copy all of it.
        let packets = packets.span
        let newest = packets[(position + Self.capacity - 1) % Self.capacity]
        var oldest = newest, bytes: Int32 = 0, lost: Int32 = 0, used = 1
        var first: Int32 = 0, last: Int32 = 0
        for back in 2...count {
            let packet = packets[(position + 2 * Self.capacity - back) % Self.capacity]
            // Low rates need a longer time for enough packets.
            let age = newest.arrival &- packet.arrival
            guard age <= Self.span || (used < Self.leastPackets && age <= Self.longest) else { break }
            // A pause of the sender is not a property of the link.
            guard oldest.sent &- packet.sent <= Self.span / 2 else { break }
            bytes &+= oldest.size
            lost &+= oldest.lost
            oldest = packet
            used += 1
            first = max(first, age)
            last = min(last, age)
        }
        var arrivedIn = first &- last
        guard used >= Self.leastPackets, arrivedIn >= Self.least else { return nil }
        let sentIn = max(newest.sent &- oldest.sent, 1)
        // Jitter can shorten the delay of the first packets and lengthen that of the last ones.
        if arrivedIn > sentIn { arrivedIn = max(sentIn, arrivedIn &- Int32(clamping: 2 * jitter)) }
        return Rates(
            sent: Double(bytes &+ lost) * 8e6 / Double(sentIn), arrived: Double(bytes) * 8e6 / Double(arrivedIn))
    }
}

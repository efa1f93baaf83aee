/// How fast the last packets were sent and how fast they came: what a full bottleneck lets through, within a quarter of a second.
///
/// Not in Google's congestion control, whose smoothed rate needs seconds to follow a link that became six times slower. While queues grow the
/// bottleneck is busy without a pause, so the rate of the last arrivals is its capacity. The other way round, where packets come as fast as they
/// were sent, the link carries the load and a slope of the delay is no reason to go below it.
struct DeliveryWindow: Sendable {
    struct Rates: Sendable {
        /// Bits a second.
        var sent: Double
        var arrived: Double
    }

    /// 16 bytes: the window is read at each feedback, mostly out of cold memory. Only differences of times are used, so half an hour's
    /// wrap does no harm.
    private struct Packet {
        var sent: Int32 = 0
        var arrival: Int32 = 0
        var size: Int32 = 0
        /// Bytes that left before it and were lost.
        var lost: Int32 = 0
    }

    private static let capacity = 64
    /// Microseconds looked at.
    private static let span: Int32 = 250_000
    /// Where packets are rare, so long at most.
    private static let longest: Int32 = 500_000
    /// Below this a rate is noise.
    private static let least: Int32 = 30_000
    private static let leastPackets = 6

    private var packets = InlineArray<64, Packet>(repeating: Packet())
    private var count = 0
    private var position = 0
    private var lost = 0

    init() {}

    mutating func takeLost(_ size: Int) { lost += size }

    /// A packet that was told as lost came after all.
    mutating func recovered(_ size: Int) {
        if lost >= size { return lost -= size }
        // A subscript of the array itself copies all of it.
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

    mutating func take(_ size: Int, sent: Int64, arrival: Int64) {
        packets[position] = Packet(
            sent: Int32(truncatingIfNeeded: sent), arrival: Int32(truncatingIfNeeded: arrival),
            size: Int32(truncatingIfNeeded: size), lost: Int32(clamping: lost))
        lost = 0
        position = (position + 1) % Self.capacity
        count = min(count + 1, Self.capacity)
    }

    /// The rates over the last quarter second, where delays stray by `jitter` microseconds; nil while that holds too little to tell.
    func rates(besides jitter: Int64) -> Rates? {
        guard count >= Self.leastPackets else { return nil }
        // A subscript of the array itself copies all of it.
        let packets = packets.span
        let newest = packets[(position + Self.capacity - 1) % Self.capacity]
        var oldest = newest, bytes: Int32 = 0, lost: Int32 = 0, used = 1
        var first: Int32 = 0, last: Int32 = 0
        for back in 2...count {
            let packet = packets[(position + 2 * Self.capacity - back) % Self.capacity]
            // Low rates need longer to have packets enough.
            let age = newest.arrival &- packet.arrival
            guard age <= Self.span || (used < Self.leastPackets && age <= Self.longest) else { break }
            // A pause of the sender is no property of the link.
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
        // Jitter takes some of the first packets' delay and adds to some of the last ones'.
        if arrivedIn > sentIn { arrivedIn = max(sentIn, arrivedIn &- Int32(clamping: 2 * jitter)) }
        return Rates(
            sent: Double(bytes &+ lost) * 8e6 / Double(sentIn), arrived: Double(bytes) * 8e6 / Double(arrivedIn))
    }
}

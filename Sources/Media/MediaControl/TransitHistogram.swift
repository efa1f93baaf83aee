public import Primitives

/// How long packets stayed in the server, from the turn that read them to the system call that sent them.
///
/// Counted for all packets of a flush at once: the turn reads the clock at its start, a flush reads it once at its end. So the
/// time a packet waited in the kernel before the turn is not included, and a packet sent early in a flush counts as long as the last.
public struct TransitHistogram: Sendable {
    /// Upper bounds of the buckets in microseconds; larger values go into one more. The targets are 300 us for the
    /// median and 1 ms for the 99th percentile.
    public static let boundsMicroseconds: [Int64] = [
        20, 50, 100, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    ]

    /// Packets by bucket, one bucket more than there are bounds.
    public private(set) var counts = InlineArray<13, UInt64>(repeating: 0)
    /// Sum of all times.
    public private(set) var total = TimeSpan.zero

    public init() {}

    /// Adds `packets` that took `time` each.
    public mutating func add(_ packets: UInt64, _ time: TimeSpan) {
        var bucket = 0
        while bucket < 12, time.nanoseconds > Self.bounds[bucket] { bucket += 1 }
        counts[bucket] &+= packets
        total = total + time * Int64(clamping: packets)
    }

    private static let bounds: InlineArray<12, Int64> = [
        20_000, 50_000, 100_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000,
        50_000_000,
    ]

    /// Packets counted.
    public var count: UInt64 { counts.span.indices.reduce(0) { $0 &+ counts[$1] } }
}

/// How often each value occurred, with a relative error of at most 1/32, in constant memory.
///
/// Values are nanoseconds; up to 32 ns each has a bucket of its own, above that 32 buckets share each power of two.
public struct Histogram: Sendable {
    private static let bucketCount = 32 * 40
    private var buckets = [UInt32](repeating: 0, count: Histogram.bucketCount)
    /// How many values there are.
    public private(set) var count: UInt64 = 0
    /// The largest value.
    public private(set) var maximum: Int64 = 0
    private var sum: Int64 = 0

    public init() {}

    /// Counts one value; negative ones (from clocks that disagree) count as 0.
    public mutating func add(_ value: Int64) {
        let value = max(0, value)
        buckets[Self.bucket(of: value)] &+= 1
        count &+= 1
        sum &+= value
        maximum = max(maximum, value)
    }

    /// Adds all of another's values.
    public mutating func add(_ other: Histogram) {
        for index in buckets.indices { buckets[index] &+= other.buckets[index] }
        count &+= other.count
        sum &+= other.sum
        maximum = max(maximum, other.maximum)
    }

    public mutating func removeAll() { self = Histogram() }

    /// The arithmetic mean.
    public var mean: Double { count == 0 ? 0 : Double(sum) / Double(count) }

    /// The value below which the share `quantile` of all values lies.
    public func quantile(_ quantile: Double) -> Int64 {
        guard count > 0 else { return 0 }
        let wanted = max(1, UInt64((Double(count) * quantile).rounded(.up)))
        var seen: UInt64 = 0
        for (index, bucket) in buckets.enumerated() {
            seen += UInt64(bucket)
            if seen >= wanted { return min(Self.middle(of: index), maximum) }
        }
        return maximum
    }

    private static func bucket(of value: Int64) -> Int {
        guard value >= 32 else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount - 5
        return min(bucketCount - 1, 32 * (exponent + 1) + Int(value >> Int64(exponent)) - 32)
    }

    private static func middle(of bucket: Int) -> Int64 {
        guard bucket >= 32 else { return Int64(bucket) }
        let exponent = Int64(bucket / 32 - 1)
        return (Int64(bucket % 32 + 32) << exponent) + (1 << exponent) / 2
    }
}

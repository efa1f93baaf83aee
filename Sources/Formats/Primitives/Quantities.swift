/// A rate of bits per second.
public struct Bitrate: Hashable, Comparable, Sendable {
    /// Bits per second, never negative.
    public var bitsPerSecond: Int64

    @inlinable public init(bitsPerSecond: Int64) { self.bitsPerSecond = max(0, bitsPerSecond) }
    /// A rate of `n` bits per second.
    @inlinable public static func bitsPerSecond(_ n: Int64) -> Self { Self(bitsPerSecond: n) }
    /// A rate of `n` thousand bits per second.
    @inlinable public static func kilobitsPerSecond(_ n: Int64) -> Self { Self(bitsPerSecond: n * 1_000) }
    public static let zero = Bitrate(bitsPerSecond: 0)

    /// Thousands of bits per second, rounded down.
    @inlinable public var kilobitsPerSecond: Int64 { bitsPerSecond / 1_000 }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.bitsPerSecond < b.bitsPerSecond }
    @inlinable public static func + (a: Self, b: Self) -> Self {
        Self(bitsPerSecond: a.bitsPerSecond &+ b.bitsPerSecond)
    }
}

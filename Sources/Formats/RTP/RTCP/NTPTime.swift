public import Primitives

/// NTP timestamps (RFC 3550 section 4): seconds since 1900 as 32.32 fixed point. The server's own clock is the monotonic one, moved to the year 2024 so that
/// receivers take it for a wall clock.
public enum NTPTime {
    /// 1 January 2024 in seconds since 1900.
    private static let epoch: UInt64 = 3_913_056_000

    /// The moment as 32.32 fixed point.
    public static func at(_ now: MonotonicTime) -> UInt64 {
        (epoch << 32) &+ UInt64(bitPattern: fixedPoint(.nanoseconds(now.nanoseconds)))
    }

    /// A length of time as signed 32.32 fixed point.
    public static func fixedPoint(_ interval: TimeSpan) -> Int64 {
        let seconds = interval.nanoseconds / 1_000_000_000, rest = interval.nanoseconds % 1_000_000_000
        return seconds << 32 &+ (rest << 32) / 1_000_000_000
    }

    /// The time from 1900 to a timestamp, cut to whole nanoseconds.
    public static func since1900(_ timestamp: UInt64) -> TimeSpan {
        let fraction = ((timestamp & 0xffff_ffff) * 1_000_000_000) >> 32
        return .nanoseconds(Int64(timestamp >> 32) * 1_000_000_000 + Int64(fraction))
    }

    /// The middle 32 bits of a timestamp, as reports quote it (LSR, LRR).
    public static func middle(_ timestamp: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: timestamp >> 16) }

    /// A delay as reports give it (DLSR, DLRR): in steps of 1/65536 s.
    public static func shortInterval(_ interval: TimeSpan) -> UInt32 {
        UInt32(clamping: interval.nanoseconds / 1_000 * 65_536 / 1_000_000)
    }

    /// A difference of such delays and middles as a length of time.
    public static func interval(_ short: Int32) -> TimeSpan { .nanoseconds(Int64(short) * 1_000_000_000 / 65_536) }
}

/// A moment on the machine's monotonic clock, in nanoseconds since an arbitrary start.
///
/// Time is an argument everywhere below Runtime: the worker's loop reads the clock once per turn and passes the time down, and a simulation passes any moment.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    /// Nanoseconds since the clock's start.
    public var nanoseconds: Int64

    /// A moment `nanoseconds` after the clock's start.
    @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A moment `milliseconds` after the clock's start.
    @inlinable public init(milliseconds: Int64) { self.nanoseconds = milliseconds * 1_000_000 }

    /// The clock's start; also stands for "never yet" where a past moment is expected.
    @inlinable public static var zero: Self { Self(nanoseconds: 0) }
    /// Later than any real moment: the deadline of a machine that waits for nothing.
    @inlinable public static var distantFuture: Self { Self(nanoseconds: .max) }

    /// Whole milliseconds since the clock's start.
    @inlinable public var milliseconds: Int64 { nanoseconds / 1_000_000 }
    /// Whole microseconds since the clock's start.
    @inlinable public var microseconds: Int64 { nanoseconds / 1_000 }

    @inlinable public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    /// Saturates at `distantFuture`, so that "never" stays never.
    @inlinable public static func + (time: Self, interval: TimeSpan) -> Self {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(interval.nanoseconds)
        return overflow ? .distantFuture : Self(nanoseconds: sum)
    }

    @inlinable public static func - (time: Self, interval: TimeSpan) -> Self {
        Self(nanoseconds: time.nanoseconds &- interval.nanoseconds)
    }

    @inlinable public static func - (later: Self, earlier: Self) -> TimeSpan {
        TimeSpan(nanoseconds: later.nanoseconds &- earlier.nanoseconds)
    }
}

/// A length of time in nanoseconds.
///
/// Swift's `Duration` counts attoseconds in 128 bits, whose division costs more than parsing a packet (measured), so the
/// media plane has its own. It converts from `Duration` where configuration meets the core.
public struct TimeSpan: Hashable, Comparable, Sendable {
    /// The length in nanoseconds; negative when it points back.
    public var nanoseconds: Int64

    @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The same length as a `Duration`, cut to whole nanoseconds.
    public init(_ duration: Duration) {
        let parts = duration.components
        self.nanoseconds = parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000
    }

    /// A length of `n` nanoseconds.
    @inlinable public static func nanoseconds(_ n: Int64) -> Self { Self(nanoseconds: n) }
    /// A length of `n` microseconds.
    @inlinable public static func microseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000) }
    /// A length of `n` milliseconds.
    @inlinable public static func milliseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000) }
    /// A length of `n` seconds.
    @inlinable public static func seconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000_000) }
    @inlinable public static var zero: Self { Self(nanoseconds: 0) }

    /// Whole microseconds.
    @inlinable public var microseconds: Int64 { nanoseconds / 1_000 }
    /// Whole milliseconds.
    @inlinable public var milliseconds: Int64 { nanoseconds / 1_000_000 }
    /// Seconds with a fraction, for rates and reports.
    @inlinable public var seconds: Double { Double(nanoseconds) / 1e9 }

    @inlinable public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }
    @inlinable public static func + (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds &+ b.nanoseconds) }
    @inlinable public static func - (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds &- b.nanoseconds) }
    @inlinable public static func * (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds &* n) }
    @inlinable public static func / (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds / n) }
}

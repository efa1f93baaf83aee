import Glibc
public import Primitives

/// The machine's clocks. Nothing else in Martlet reads one: a loop reads the clock once per turn and passes the time down.
public enum MonotonicClock {
    /// The time by CLOCK_MONOTONIC.
    public static func now() -> MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Milliseconds since 1970, for reports and tokens; it may jump.
    public static func wallMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

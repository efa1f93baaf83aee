import Glibc

/// Processor time used, in nanoseconds. Wall time says little on a machine that others use too.
public enum ProcessorTime {
    /// Of the calling thread.
    public static var thread: Int64 { read(CLOCK_THREAD_CPUTIME_ID) }
    /// Of the whole process.
    public static var process: Int64 { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

extension Array where Element: BinaryFloatingPoint {
    /// The middle value; 0 for none.
    public var median: Element {
        guard !isEmpty else { return 0 }
        let sorted = self.sorted()
        let middle = count / 2
        return count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

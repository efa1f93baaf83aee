import Primitives

/// How often a track begins another file. Each file costs two synchronizations of the disk and two encodings of the summary on the only thread that records, so
/// a publisher whose keyframes all differ in form must not begin a file with each.
struct FilePace {
    /// Files that may begin at once: a phone that is rotated and rotated back, and a change of codec in addition.
    private static let burst: Int64 = 4
    /// After those.
    private static let interval = TimeSpan.seconds(1)
    /// Maximum files of one track: 10,000 take 4 MB in the summary, which is written anew with each of them. In files of an hour they last for a year, in files
    /// of ten seconds, the shortest that the API takes, for a day.
    static let mostFiles = 10_000

    /// When the files so far would have begun, one in each interval.
    private var due: MonotonicTime?

    /// Whether another file may begin.
    func allows(at now: MonotonicTime) -> Bool {
        guard let due else { return true }
        return (due - now).nanoseconds <= (Self.burst - 1) * Self.interval.nanoseconds
    }

    /// A file begins.
    mutating func begin(at now: MonotonicTime) {
        due = max(due ?? now, now) + Self.interval
    }
}

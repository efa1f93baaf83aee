import Primitives

/// Whether other traffic fills the queue on the path, so that waiting until it drains would mean to starve.
///
/// A sender's own queue drains as soon as it sends less than the path carries. So an alarm records the delivered rate, which is the path's capacity if
/// the queue is our own; each second at half that rate must then shorten the queue by half a second. If the queue should be empty with a margin and
/// still exists, other traffic keeps it full, and sending still less would not help. Copa (Arun and Balakrishnan, NSDI 2018, section 4) also tests whether the
/// queue empties as the sender's own rate implies before it competes.
struct CrossTrafficQueue: Sendable {
    /// The delivered rate at the last alarm, bits per second; 0 before one.
    private var full = 0.0
    /// The longest wait since then, and how much of it should have drained, seconds.
    private var longest = 0.0
    private var drained = 0.0
    private var last = MonotonicTime.zero
    /// The highest estimate of the last minute without competition, and of the one before.
    private var best = 0.0, bestBefore = 0.0
    private var turned = MonotonicTime.zero
    private static let half = TimeSpan.seconds(60)
    private(set) var isPresent = false
    /// An alarm has determined the maximum delivered rate.
    var isKnown: Bool { full > 0 }

    /// Margin, as a share of the queue and in seconds: rates are measured over a quarter of a second.
    private static let room = 1.25, margin = 0.1
    /// Minimum standing wait in microseconds: jitter looks like a short standing queue.
    private static let least: Int64 = 50_000
    /// Maximum time counted between two reports, seconds.
    private static let step = 0.25

    init() {}

    /// More was sent than delivered, or the queue grew: the present delivered rate is the capacity.
    mutating func alarm(delivered: Double) {
        full = delivered
        longest = 0
        drained = 0
    }

    /// The queue was seen empty, or the delivered rate is no longer meaningful.
    mutating func forget() {
        full = 0
        longest = 0
        drained = 0
        isPresent = false
    }

    /// Half of the former capacity: a fair share next to one other flow.
    var share: Double { max(best, bestBefore) / 2 }

    /// Records the estimate, while no other traffic competes.
    mutating func noteEstimate(_ bitsPerSecond: Double, at now: MonotonicTime) {
        guard !isPresent else { return }
        if now - turned > Self.half {
            turned = now
            bestBefore = best
            best = bitsPerSecond
        }
        best = max(best, bitsPerSecond)
    }

    /// Processes one feedback: the wait in microseconds and the delivered rate in bits per second.
    mutating func update(wait: Int64, delivered: Double, at now: MonotonicTime) {
        let elapsed = min((now - last).seconds, Self.step)
        last = now
        guard full > 0 else { return }
        longest = max(longest, Double(wait) / 1e6)
        drained = max(drained + (1 - delivered / full) * elapsed, 0)
        if drained > Self.room * longest + Self.margin, wait >= Self.least { isPresent = true }
    }
}

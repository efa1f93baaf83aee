import Primitives

/// Whether the queue on the path is somebody else's, so that to wait until it drains is to starve.
///
/// One's own queue drains as soon as less is sent than the path carries. So an alarm notes what came through, which is what the path carries if
/// the queue is one's own, and each second at half of that must then shorten it by half a second. Once it would be gone with room to spare and is
/// still there, others keep it full, and sending still less would not help. Copa (Arun and Balakrishnan, NSDI 2018, section 4) asks the same, whether the
/// queue empties as one's own rate says that it should, before it competes.
struct ForeignQueue: Sendable {
    /// What came through at the last alarm, bits a second; 0 before one.
    private var full = 0.0
    /// The longest wait since then, and how much of it should have drained, seconds.
    private var longest = 0.0
    private var drained = 0.0
    private var last = MonotonicTime.zero
    /// The highest estimate of the last minute without competition, and of the one before.
    private var best = 0.0, bestBefore = 0.0
    private var turned = MonotonicTime.zero
    private static let half = TimeInterval.seconds(60)
    private(set) var isForeign = false
    /// An alarm has set what comes through at most.
    var isKnown: Bool { full > 0 }

    /// Room to spare, as a share of the queue and in seconds: rates are measured over a quarter of a second.
    private static let room = 1.25, margin = 0.1
    /// Microseconds that must wait all the time: jitter looks like a short queue that stays.
    private static let least: Int64 = 50_000
    /// Between two reports no more than this is counted, seconds.
    private static let step = 0.25

    init() {}

    /// More was sent than came through, or the queue grew: what comes through now is all there is.
    mutating func alarm(delivered: Double) {
        full = delivered
        longest = 0
        drained = 0
    }

    /// The queue was seen empty, or what comes through is no measure any more.
    mutating func forget() {
        full = 0
        longest = 0
        drained = 0
        isForeign = false
    }

    /// Half of what the path carried before: as much as is asked for beside another flow.
    var share: Double { max(best, bestBefore) / 2 }

    /// Notes what the path is believed to carry, while nobody competes for it.
    mutating func noteEstimate(_ bitsPerSecond: Double, at now: MonotonicTime) {
        guard !isForeign else { return }
        if now - turned > Self.half {
            turned = now
            bestBefore = best
            best = bitsPerSecond
        }
        best = max(best, bitsPerSecond)
    }

    /// Takes one feedback: the wait in microseconds and what comes through in bits a second.
    mutating func update(wait: Int64, delivered: Double, at now: MonotonicTime) {
        let elapsed = min((now - last).seconds, Self.step)
        last = now
        guard full > 0 else { return }
        longest = max(longest, Double(wait) / 1e6)
        drained = max(drained + (1 - delivered / full) * elapsed, 0)
        if drained > Self.room * longest + Self.margin, wait >= Self.least { isForeign = true }
    }
}

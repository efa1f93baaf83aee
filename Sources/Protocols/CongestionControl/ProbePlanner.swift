import Primitives

/// When to probe and how high.
///
/// The timing follows libwebrtc's `ProbeController`: at the first feedback, at once after a successful probe, and for the former rate soon
/// after a fall. The height is a router's own rule, from the first probe on: a quarter above the next layer's bitrate, at least three tenths above the
/// estimate, at most four times that; and never beyond what would be used. A probe that found nothing makes the next one
/// wait longer, up to `longest`, so that a faster link is detected within seconds and an unchanged link carries a probe of
/// some 2 kB every few seconds.
struct ProbePlanner: Sendable {
    /// The demand, by the allocation.
    struct Demand: Sendable, Equatable {
        /// The bitrate of the current allocation, bits per second.
        var allocated = 0.0
        /// Some of it is a video's.
        var hasVideo = false
        /// The bandwidth needed for the next step up; nil if no more is wanted.
        var next: Double?
        /// The bitrate of everything preferred.
        var wanted = 0.0
    }

    private static let shortest = TimeSpan.milliseconds(1_000)
    private static let longest = TimeSpan.milliseconds(4_000)
    /// Maximum ratio that one probe can show.
    private static let mostFactor = 4.0

    private(set) var demand = Demand()
    private var interval = shortest
    private var nextDue = MonotonicTime.distantFuture
    private var hasStarted = false
    /// The rate before the last fall, and when that was.
    private var droppedFrom: Double?
    private var droppedAt = MonotonicTime.zero
    private var droppedSince = MonotonicTime.zero
    /// The next probe is for the rate before the fall.
    private(set) var isRecovering = false
    private var recovery: (rate: Double, since: MonotonicTime)?
    /// When the last fall occurred that soon turned out not to be the link's; nil before one.
    private(set) var wrongFall: MonotonicTime?
    /// A queue that drains within this time was no lack of bandwidth.
    private static let patience = TimeSpan.milliseconds(1_500)
    private static let recovered = 0.85
    /// Falls that follow each other within this time are not reverted, whatever caused them: layers would flap.
    private static let peace = TimeSpan.seconds(5)

    init() {}

    /// When to call `plan` next.
    var nextDeadline: MonotonicTime { demand.next == nil ? .distantFuture : nextDue }

    /// The first feedback arrived, or feedback resumed: the link may be probed from now on.
    mutating func start(at now: MonotonicTime) {
        hasStarted = true
        interval = Self.shortest
        nextDue = now
    }

    mutating func stop() {
        hasStarted = false
        nextDue = .distantFuture
    }

    /// The allocation or the demand changed.
    mutating func setDemand(_ demand: Demand, at now: MonotonicTime) {
        // New demand: do not wait for the end of a long interval.
        if hasStarted, let next = demand.next, self.demand.next == nil || next < (self.demand.next ?? 0) * 0.8 {
            interval = Self.shortest
            nextDue = min(nextDue, now + Self.shortest / 2)
        }
        self.demand = demand
    }

    /// The rate to probe at now; nil when it is not time or nothing can be gained.
    mutating func plan(estimate: Double, isCongested: Bool, isContested: Bool, at now: MonotonicTime) -> Double? {
        guard hasStarted, now >= nextDue, let next = demand.next else { return nil }
        guard !isCongested else {
            nextDue = now + Self.shortest
            return nil
        }
        if isRecovering, let before = droppedFrom {
            isRecovering = false
            droppedFrom = nil
            nextDue = now + interval
            let rate = max(min(before * Self.recovered, max(demand.wanted * 1.3, next * 1.25)), estimate)
            recovery = (rate, droppedSince)
            return rate
        }
        nextDue = now + interval
        interval = min(interval + interval / 2, Self.longest)
        // A quarter above the next layer's bitrate, so that it fits with a margin; never so little that it could not show growth.
        // In a queue that others keep full a probe gets its share of the link; a rate is fair if that share suffices.
        let margin = isContested ? 1.5 : 1.25
        let goal = max(next * margin, estimate * 1.3)
        let all = max(demand.wanted * 1.3, next * margin)
        return min(min(goal, all), estimate * Self.mostFactor)
    }

    /// The rate fell by much: it may only be a stall, so probe again soon, and at once when the queue has drained.
    mutating func dropped(from rate: Double, at now: MonotonicTime) {
        guard hasStarted else { return }
        interval = Self.shortest
        nextDue = min(nextDue, now + Self.shortest / 2)
        if droppedFrom == nil || now - droppedAt > Self.patience {
            droppedFrom = rate
            droppedSince = now
        }
        droppedAt = now
    }

    /// The queue on the path is empty. Soon after a fall that is the end of a stall, and one probe tests most of the former rate, as libwebrtc does after
    /// drops.
    mutating func drained(at now: MonotonicTime) {
        guard droppedFrom != nil, !isRecovering else { return }
        guard now - droppedAt <= Self.patience else {
            droppedFrom = nil
            return
        }
        isRecovering = true
        nextDue = now
    }

    /// The last probe was inconclusive. The next one hits another moment between two frames, which a whole number of seconds may not.
    mutating func repeatSoon(at now: MonotonicTime) { nextDue = min(nextDue, now + Self.shortest / 2) }

    /// A probe at `rate` showed `result`.
    mutating func succeeded(_ result: Double, rate: Double, estimateBefore: Double, at now: MonotonicTime) {
        if let asked = recovery, asked.rate == rate, result >= 0.8 * rate,
            wrongFall.map({ asked.since - $0 >= Self.peace }) ?? true
        {
            wrongFall = asked.since
        }
        recovery = nil
        guard result > estimateBefore * 1.1 else { return }
        // The rate grows: continue at once while the link delivers what is probed.
        interval = Self.shortest
        nextDue = result > 0.7 * rate ? now : now + interval
    }
}

import Primitives

/// When to probe and how high.
///
/// After libwebrtc's `ProbeController` in when to probe: at the first feedback, at once after a probe that succeeded, and for what was there before soon
/// after a fall. How high is a router's own rule, from the first probe on: a quarter above what the next layer would take, three tenths above the
/// estimate at least, four times that at most; and nothing is probed for that nobody would use. A probe that found nothing makes the next one
/// wait longer, up to `longest`, so that the step up of a link is found within seconds and a link that stays as it is carries a probe of
/// some 2 kB every few seconds.
struct ProbePlanner: Sendable {
    /// What is wanted, by the allocation.
    struct Demand: Sendable, Equatable {
        /// What the present choice costs, bits a second.
        var allocated = 0.0
        /// What would have to be there for the next gain; nil where nothing more is wanted.
        var next: Double?
        /// What everything wanted costs.
        var wanted = 0.0
    }

    private static let shortest = TimeInterval.milliseconds(1_000)
    private static let longest = TimeInterval.milliseconds(4_000)
    /// A probe says so much about a link at most.
    private static let mostFactor = 4.0

    private(set) var demand = Demand()
    private var interval = shortest
    private var nextDue = MonotonicTime.distantFuture
    private var hasStarted = false
    /// The rate before the last fall, and when that was.
    private var droppedFrom: Double?
    private var droppedAt = MonotonicTime.zero
    private var droppedSince = MonotonicTime.zero
    /// The next probe is for what was there before the fall.
    private(set) var isRecovering = false
    private var recovery: (rate: Double, since: MonotonicTime)?
    /// When the last fall was that soon afterwards turned out to be none of the link's; nil before one.
    private(set) var wrongFall: MonotonicTime?
    /// A queue that is gone within this was no lack of bandwidth.
    private static let patience = TimeInterval.milliseconds(1_500)
    private static let recovered = 0.85
    /// Falls that follow each other within this are none to be taken back, whatever made them: pictures would flap.
    private static let peace = TimeInterval.seconds(5)

    init() {}

    /// When `plan` should be asked next.
    var nextDeadline: MonotonicTime { demand.next == nil ? .distantFuture : nextDue }

    /// The first feedback came, or feedback came again: a link may be probed from now on.
    mutating func start(at now: MonotonicTime) {
        hasStarted = true
        interval = Self.shortest
        nextDue = now
    }

    mutating func stop() {
        hasStarted = false
        nextDue = .distantFuture
    }

    /// Another choice was made or other things are wanted.
    mutating func setDemand(_ demand: Demand, at now: MonotonicTime) {
        // Something new is wanted: do not wait for the end of a long pause.
        if hasStarted, let next = demand.next, self.demand.next == nil || next < (self.demand.next ?? 0) * 0.8 {
            interval = Self.shortest
            nextDue = min(nextDue, now + Self.shortest / 2)
        }
        self.demand = demand
    }

    /// The rate to probe at now; nil when it is not time or nothing is to be gained.
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
        // A quarter above what the next layer takes, so that it fits with room to spare; never so little that it could not show growth.
        // In a queue that others keep full a probe gets its share of the link; a rate is fair where that share suffices.
        let margin = isContested ? 1.5 : 1.25
        let goal = max(next * margin, estimate * 1.3)
        let all = max(demand.wanted * 1.3, next * margin)
        return min(min(goal, all), estimate * Self.mostFactor)
    }

    /// The rate fell by much: perhaps it was only a stall, so look again soon, and at once where the queue is gone at once.
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

    /// Nothing waits on the path. Soon after a fall that is a stall's end, and one probe asks for most of what was there before, as libwebrtc does after
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

    /// The last probe said nothing. The next one falls on another moment between two pictures, which a whole number of seconds may not.
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
        // It grows: go on at once while the link gives what was asked.
        interval = Self.shortest
        nextDue = result > 0.7 * rate ? now : now + interval
    }
}

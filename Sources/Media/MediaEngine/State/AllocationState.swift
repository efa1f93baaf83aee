import Forwarding
import MediaControl
import Primitives

/// What the sharing out of one peer's bandwidth remembers.
struct AllocationState {
    var policy = DownlinkPolicy()
    /// When it is looked at next.
    var nextLook = MonotonicTime.distantFuture
    /// Everybody had what is wanted at the last look, and nothing was asked for since.
    var isCalm = false
    /// The estimate that the last look went by; nil: no limit.
    var estimate: Bitrate?
    /// What the chosen layers cost, and what everything wanted would, sound included.
    var allocated = Bitrate.zero
    var wanted = Bitrate.zero
    var decisions = DecisionLog()
    var estimates = EstimateLog()

    /// Layers' rates are measured over a second; looking four times in it is soon enough for what no estimate hastens.
    static let interval = TimeInterval.milliseconds(250)
    /// Where everybody has what is wanted, only a layer that grows can change that.
    static let calmInterval = TimeInterval.seconds(1)
    /// An estimate that fell by more than this is looked at at once: every packet too many waits in a queue.
    static let fall = 0.95

    /// Whether a new estimate is reason to look at once.
    func isHastened(by new: Bitrate?) -> Bool {
        guard let new else { return false }
        guard let estimate else { return true }
        return Double(new.bitsPerSecond) < Self.fall * Double(estimate.bitsPerSecond)
            || Double(new.bitsPerSecond) > 1.05 * Double(estimate.bitsPerSecond)
    }
}

/// What the sharing out remembers about one picture.
struct PictureState {
    var wish = ViewerWish()
    /// What was decided last; nil: nothing is sent.
    var layer: AllocationRequest.CurrentLayer?
    var hasDecision = false
    var reason = ""
    /// The same with its figures of now.
    var latest: DecisionRecord?
    /// More pictures are wanted than the viewer may have.
    var isSurplus: Bool { reason == AllocationDecision.Reason.tooManyVideos(limit: 0).word }
    /// When it last came down for want of bandwidth, and how often it did so soon after it had risen.
    var fell = MonotonicTime.zero
    var rose = MonotonicTime.zero
    /// When it began to be sent.
    var began = MonotonicTime.zero
    var falls = 0
    /// The estimate under which it last fell; nil: it was not the estimate.
    var fellUnder: Bitrate?
    /// What the layer cost when it was risen to.
    var riseCost = Bitrate.zero

    /// Rising again waits so long (H9: at most one change in 5 s) …
    static let settling = TimeInterval.seconds(5)
    /// … and twice as long each time that a rise was followed by a fall within this.
    static let trial = TimeInterval.seconds(15)
    private static let mostDoublings = 3
    private static let memory = TimeInterval.seconds(20)
    private static let fitting = TimeInterval.seconds(3)
    /// A picture begins with a keyframe, which makes a rate measured since then look too high for so long.
    private static let youth = TimeInterval.seconds(2)

    /// What the layer in use costs, seen without its first keyframe.
    func cost(_ measured: Bitrate, at now: MonotonicTime) -> Bitrate {
        guard rose != .zero, now - rose < Self.youth else { return measured }
        return min(measured, .bitsPerSecond(Int64(Double(riseCost.bitsPerSecond) * 1.1)))
    }

    /// The estimate fell at `moment` for a stall that was over at once: whoever came down for it need not wait to rise again.
    mutating func forgive(_ moment: MonotonicTime) {
        guard fell != .zero, fell - moment < Self.stall, moment - fell < Self.stall else { return }
        fell = .zero
        falls = max(falls - 1, 0)
    }

    /// Pictures come down as the estimate falls, before and after its largest step.
    private static let stall = TimeInterval.milliseconds(800)

    /// Whether it may rise again; a path that carries twice as much is another one, and the attempts on the old one say nothing of it.
    func mayRise(on estimate: Bitrate?, at now: MonotonicTime) -> Bool {
        guard fell != .zero else { return true }
        return now - fell >= Self.settling * Int64(isOtherPath(estimate) ? 1 : 1 << falls)
    }

    /// How many attempts to rise failed of late; after each `memory` without another one they count for one less.
    func failedRises(on estimate: Bitrate?, at now: MonotonicTime) -> Int {
        guard falls > 0, !isOtherPath(estimate) else { return 0 }
        return max(falls - Int((now - fell).nanoseconds / Self.memory.nanoseconds), 0)
    }

    private func isOtherPath(_ estimate: Bitrate?) -> Bool {
        fellUnder.map { (estimate?.bitsPerSecond ?? .max) / 2 >= $0.bitsPerSecond } ?? false
    }

    /// Takes a decision; true when it is another than before.
    mutating func take(
        _ layer: AllocationRequest.CurrentLayer?, cost: Bitrate, reason word: String, isShort: Bool,
        estimate: Bitrate?, at now: MonotonicTime
    ) -> Bool {
        let old = (self.layer?.spatial ?? -1, self.layer?.temporal ?? -1),
            new = (layer?.spatial ?? -1, layer?.temporal ?? -1)
        let isNew = !hasDecision || old != new || reason != word
        if layer != nil, self.layer == nil { began = now }
        // In its first seconds a picture is being fitted in: that is no failed attempt.
        if hasDecision, new < old, isShort, now - began >= Self.fitting {
            falls = rose != .zero && now - rose < Self.trial ? min(falls + 1, Self.mostDoublings) : 0
            fell = now
            fellUnder = estimate
        } else if new > old {
            rose = now
            riseCost = cost
        }
        self.layer = layer
        hasDecision = true
        reason = word
        return isNew
    }
}

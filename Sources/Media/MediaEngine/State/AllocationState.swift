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

    /// What waits on the path takes longer than a publisher's answer with a keyframe, a round trip and a frame, usually does: until then there is enough
    /// under way to be shown.
    static let fullQueue = TimeInterval.milliseconds(75)

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
    /// When it last came down for want of bandwidth, and when it last rose, to what.
    var fell = MonotonicTime.zero
    var rose = MonotonicTime.zero
    private(set) var risenTo = (-1, -1)
    /// It rose to a larger picture, which begins with a keyframe.
    private(set) var roseInSize = false
    /// When it began to be sent.
    var began = MonotonicTime.zero
    /// The step that was tried and left soon, how often, what it took then, and when that was last; nil: none. Smaller ones have not failed.
    private(set) var failed:
        (layer: AllocationRequest.CurrentLayer, attempts: Int, bitrate: Bitrate, at: MonotonicTime)?
    /// The estimate under which it last fell; after an attempt that failed for losses the one that had promised more. Nil: it was not the estimate.
    var fellUnder: Bitrate?
    /// The estimate when it last rose. On links that drop what exceeds them without a queue probes find far too much: being there again proves nothing.
    private(set) var roseUnder: Bitrate?
    /// What the layer cost when it was risen to.
    var riseCost = Bitrate.zero

    /// Rising again waits so long (at most one change in 5 s), twice as long where a rise has failed …
    static let settling = TimeInterval.seconds(5)
    /// … which is one that was followed by a fall within this. The step that failed waits twice as long each time, up to 80 s: each attempt
    /// fills the queue for a second, and the picture below is a good one (seen in ten minutes of Chromium on 600 kbit/s).
    static let trial = TimeInterval.seconds(15)
    private static let mostDoublings = 4
    /// After its wait it asks for more room; so many waits after its fall it is forgotten.
    private static let memory: Int64 = 3
    /// Queues of up to a second and a half are empty then.
    private static let draining = TimeInterval.milliseconds(1_500)
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
        if failed?.at == fell { failed = nil }
        fell = .zero
    }

    /// Pictures come down as the estimate falls, before and after its largest step.
    private static let stall = TimeInterval.milliseconds(800)

    /// Whether it may rise again at all.
    func mayRise(on estimate: Bitrate?, at now: MonotonicTime) -> Bool {
        fell == .zero || now - fell >= Self.settling * (failed == nil || isOtherPath(estimate) ? 1 : 2)
    }

    /// Whether it came down a moment ago, so that the queue it came down for is still there.
    func isDraining(at now: MonotonicTime) -> Bool { fell != .zero && now - fell < Self.draining }

    /// Whether its first keyframe since it became larger is still in the queue. Where many begin, each is fitted in first, and that is no reason to wait.
    func isYoung(at now: MonotonicTime) -> Bool {
        roseInSize && now - rose < Self.youth && rose - began >= Self.fitting
    }

    /// The step that failed of late. A path that carries twice as much is another one, of which attempts on the old one say nothing.
    func failedStep(on estimate: Bitrate?, at now: MonotonicTime) -> AllocationRequest.FailedStep? {
        isOtherPath(estimate) ? nil : remembered(at: now)
    }

    private func remembered(at now: MonotonicTime) -> AllocationRequest.FailedStep? {
        guard let failed else { return nil }
        let wait = Self.settling * Int64(1 << failed.attempts), elapsed = now - failed.at
        guard elapsed < wait * Self.memory else { return nil }
        return AllocationRequest.FailedStep(
            layer: failed.layer, isBarred: elapsed < wait, attempts: failed.attempts, bitrate: failed.bitrate)
    }

    private func isOtherPath(_ estimate: Bitrate?) -> Bool {
        fellUnder.map { (estimate?.bitsPerSecond ?? .max) / 2 >= $0.bitsPerSecond } ?? false
    }

    /// Takes a decision; true when it is another than before. `cost` is what the decision takes, `left` what the layers until now take.
    mutating func take(
        _ layer: AllocationRequest.CurrentLayer?, cost: Bitrate, reason word: String, isShort: Bool, left: Bitrate,
        estimate: Bitrate?, isByLoss: Bool, at now: MonotonicTime
    ) -> Bool {
        let old = (self.layer?.spatial ?? -1, self.layer?.temporal ?? -1),
            new = (layer?.spatial ?? -1, layer?.temporal ?? -1)
        let isNew = !hasDecision || old != new || reason != word
        if layer != nil, self.layer == nil { began = now }
        // In its first seconds a picture is being fitted in: that is no failed attempt.
        if hasDecision, new < old, isShort, now - began >= Self.fitting {
            noteFall(from: old, left, at: now)
            fellUnder = isByLoss && failed?.at == now ? estimate.map { max($0, roseUnder ?? $0) } : estimate
        } else if new > old {
            rose = now
            risenTo = new
            roseInSize = new.0 > old.0
            riseCost = cost
            roseUnder = estimate
        }
        self.layer = layer
        hasDecision = true
        reason = word
        return isNew
    }

    private mutating func noteFall(from old: (Int, Int), _ bitrate: Bitrate, at now: MonotonicTime) {
        fell = now
        let layer = AllocationRequest.CurrentLayer(spatial: old.0, temporal: old.1)
        if rose != .zero, now - rose < Self.trial, old >= risenTo {
            let before = remembered(at: now).map { $0.layer == layer ? $0.attempts : 0 } ?? 0
            // With its keyframe it seems to take more than it does.
            let isKnown = !roseInSize || now - rose >= Self.youth
            failed = (layer, min(before + 1, Self.mostDoublings), isKnown ? bitrate : .zero, now)
        } else if let failed, old < (failed.layer.spatial, failed.layer.temporal) {
            // Deeper for the same reason, or for another one: what failed above stays as it is.
        } else {
            failed = nil
        }
    }
}

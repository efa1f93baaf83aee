import Forwarding
import MediaControl
import Primitives

/// When one video rose and fell, and which step could not be held: this keeps a layer near the limit from flapping.
struct StepHistory {
    /// When it last stepped down for lack of bandwidth, and when it last rose, to which step; `.zero` for never.
    private var fell = MonotonicTime.zero
    private var rose = MonotonicTime.zero
    private var risenTo = Self.nothing
    /// When it last rose to a larger layer, which begins with a keyframe.
    private var grew = MonotonicTime.zero
    private var roseInSize: Bool { grew != .zero && grew == rose }
    /// When it began to be sent.
    private var began = MonotonicTime.zero
    /// The step that was tried and soon left, how often, its bitrate then, and when that last happened; nil: none. Smaller ones have not failed.
    private var failed: (layer: LayerPoint, attempts: Int, bitrate: Bitrate, at: MonotonicTime)?
    private var thinning = Thinning()
    /// The estimate at its last fall; after an attempt that failed by losses, the estimate at its rise if that was higher. Nil: the estimate was not the cause.
    private var estimateAtFall: Bitrate?
    /// The estimate when it last rose. On links that drop the excess without a queue probes overestimate by far: the same estimate again proves nothing.
    private var estimateAtRise: Bitrate?
    /// The layer's bitrate at its rise.
    private var costAtRise = Bitrate.zero

    /// Below all layers.
    private static let nothing = LayerPoint(spatial: -1, temporal: -1)
    /// Minimum wait before rising again (at most one change in 5 s), twice as long if a rise has failed …
    static let settling = TimeSpan.seconds(5)
    /// … which means that a fall followed within this time. The failed step waits twice as long each time, up to 80 s: each attempt
    /// fills the queue for a second, and the layer below is a good one (seen in ten minutes of Chromium on 600 kbit/s).
    private static let trial = TimeSpan.seconds(15)
    static let mostDoublings = 4
    /// After its wait it still needs more headroom; after this many waits since its fall it is forgotten.
    static let memory: Int64 = 3
    /// By then queues of up to a second and a half are empty.
    private static let draining = TimeSpan.milliseconds(1_500)
    private static let fitting = TimeSpan.seconds(3)
    /// A layer begins with a keyframe, which inflates its measured rate for this long.
    private static let keyframeInfluence = TimeSpan.seconds(2)
    /// Neighbouring layers differ by a factor of three, so a factor of eight means that the step was never in question.
    private static let interruption: Int64 = 8
    /// Layers step down as the estimate falls, before and after its largest step.
    static let stall = TimeSpan.milliseconds(800)

    // MARK: - Limits

    /// The bitrate of the current layer without the effect of its first keyframe.
    func cost(_ measured: Bitrate, at now: MonotonicTime) -> Bitrate {
        guard rose != .zero, now - rose < Self.keyframeInfluence else { return measured }
        return min(measured, .bitsPerSecond(Int64(Double(costAtRise.bitsPerSecond) * 1.1)))
    }

    /// Whether it may rise again at all. If the path carries many times the estimate at the fall, it was interrupted, and waiting would show nothing new;
    /// unless that happens again and again. With too few frames it waits for a moment, whatever the path carries.
    func mayRise(on estimate: Bitrate?, at now: MonotonicTime) -> Bool {
        if thinning.origin != nil, !thinning.mayEnd(at: now) { return false }
        if fell == .zero || (failed == nil && carries(Self.interruption, asMuch: estimate)) { return true }
        return now - fell >= Self.settling * (failed == nil || isOtherPath(estimate) ? 1 : 2)
    }

    /// Whether it stepped down a moment ago, so that the queue that caused it still exists.
    func isDraining(at now: MonotonicTime) -> Bool { fell != .zero && now - fell < Self.draining }

    /// Whether it may be sent with too few frames to look smooth rather than become smaller: not while it is being fitted in, nor just after it became larger,
    /// because then the attempt has failed.
    func mayThin(at now: MonotonicTime) -> Bool {
        guard !isBeingFitted(at: now), grew == .zero || now - grew >= Self.keyframeInfluence else { return false }
        return thinning.isAllowed(at: now)
    }

    /// The step that it left to keep its size with too few frames; nil: none.
    var stepBeforeThinning: LayerPoint? { thinning.origin?.step }

    /// Whether it may try all frames that look smooth again.
    func mayRegainFrames(at now: MonotonicTime) -> Bool { thinning.mayEnd(at: now) }

    /// Whether its first keyframe since it became larger is still in the queue. When many videos start, each is fitted in first, and that is no reason to wait.
    func isBeginning(at now: MonotonicTime) -> Bool {
        roseInSize && now - rose < Self.keyframeInfluence && rose - began >= Self.fitting
    }

    /// Whether it began a moment ago: its layers are being tried.
    func isBeingFitted(at now: MonotonicTime) -> Bool { now - began < Self.fitting }

    /// The step that failed recently. A path that carries twice as much counts as another path, for which old attempts prove nothing.
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

    private func isOtherPath(_ estimate: Bitrate?) -> Bool { carries(2, asMuch: estimate) }

    /// Whether the path carries `factor` times as much as at the last fall.
    private func carries(_ factor: Int64, asMuch estimate: Bitrate?) -> Bool {
        estimateAtFall.map { (estimate?.bitsPerSecond ?? .max) / factor >= $0.bitsPerSecond } ?? false
    }

    // MARK: - Events

    /// A decision.
    struct Change {
        /// The former and the new layer; nil: none.
        var from: LayerPoint?
        var to: LayerPoint?
        /// The bitrate of the former and of the new layers.
        var costBefore: Bitrate
        var cost: Bitrate
        /// The new layer has too few frames to look smooth, so that the video keeps its size.
        var isThinned: Bool
        /// The path is the limit.
        var isShort: Bool
        var estimate: Bitrate?
        /// Losses limit the estimate.
        var isByLoss: Bool
    }

    /// Records a decision; the first one about a video is never a fall.
    mutating func note(_ change: Change, isFirst: Bool, at now: MonotonicTime) {
        if change.isThinned, let from = change.from {
            thinning.begin(from: from, change.costBefore, estimate: change.estimate, at: now)
            return
        }
        let origin = thinning.finish(at: now)
        let old = origin?.step ?? change.from ?? Self.nothing, new = change.to ?? Self.nothing
        if change.to != nil, change.from == nil { began = now }
        // In its first seconds a video is being fitted in: that is no failed attempt.
        if !isFirst, new < old, change.isShort, now - began >= Self.fitting {
            // Some of its frames are back: it fell when it lost them.
            let partial = new.spatial == old.spatial ? origin : nil
            let moment = partial?.since ?? now, estimate = partial?.estimate ?? change.estimate
            noteFall(from: old, origin?.bitrate ?? change.costBefore, after: (origin?.since ?? now) - rose, at: moment)
            estimateAtFall =
                change.isByLoss && failed?.at == moment ? estimate.map { max($0, estimateAtRise ?? $0) } : estimate
        } else if new > old {
            rose = now
            risenTo = new
            if new.spatial > old.spatial { grew = now }
            costAtRise = change.cost
            estimateAtRise = change.estimate
        }
    }

    /// A fall at `now`. `held`: how long after its last rise the video ran short.
    private mutating func noteFall(
        from old: LayerPoint, _ bitrate: Bitrate, after held: TimeSpan, at now: MonotonicTime
    ) {
        fell = now
        if rose != .zero, held < Self.trial, old >= risenTo {
            let before = remembered(at: now).map { $0.layer == old ? $0.attempts : 0 } ?? 0
            // Its keyframe inflates the measured rate.
            let isKnown = !roseInSize || held >= Self.keyframeInfluence
            failed = (old, min(before + 1, Self.mostDoublings), isKnown ? bitrate : .zero, now)
        } else if let failed, old < failed.layer {
            // A further step down, for the same reason or another: the failed step above stays recorded.
        } else {
            failed = nil
        }
    }

    /// The estimate fell at `moment` for a stall that ended at once: a video that stepped down for it need not wait to rise again.
    mutating func forgive(_ moment: MonotonicTime) {
        thinning.forgive(moment, within: Self.stall)
        guard fell != .zero, fell - moment < Self.stall, moment - fell < Self.stall else { return }
        if failed?.at == fell { failed = nil }
        fell = .zero
    }
}

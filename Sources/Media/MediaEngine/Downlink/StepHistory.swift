import Forwarding
import MediaControl
import Primitives

/// When one video rose and fell, and which step could not be held: this keeps a layer near the limit from flapping.
struct StepHistory {
    /// When it last stepped down for lack of bandwidth, and when it last rose, to which step; `.zero` for never.
    private var fell = MonotonicTime.zero
    private var rose = MonotonicTime.zero
    private var risenTo = Self.nothing
    /// It rose to a larger layer, which begins with a keyframe.
    private var roseInSize = false
    /// When it began to be sent.
    private var began = MonotonicTime.zero
    /// The step that was tried and soon left, how often, its bitrate then, and when that last happened; nil: none. Smaller ones have not failed.
    private var failed: (layer: LayerPoint, attempts: Int, bitrate: Bitrate, at: MonotonicTime)?
    /// It keeps its size in fewer frames than look smooth: the step that it came from, that step's bitrate, and since when; nil: it does not.
    private var thinned: (from: LayerPoint, bitrate: Bitrate, since: MonotonicTime)?
    /// The estimate at its last fall; after an attempt that failed by losses, the estimate at its rise if that was higher. Nil: the estimate was not the cause.
    private var estimateAtFall: Bitrate?
    /// The estimate when it last rose. On links that drop the excess without a queue probes overestimate by far: the same estimate again proves nothing.
    private var estimateAtRise: Bitrate?
    /// The layer's bitrate at its rise.
    private var costAtRise = Bitrate.zero

    /// Below all layers.
    private static let nothing = LayerPoint(spatial: -1, temporal: -1)
    /// Minimum wait before rising again (at most one change in 5 s), twice as long if a rise has failed …
    private static let settling = TimeInterval.seconds(5)
    /// … which means that a fall followed within this time. The failed step waits twice as long each time, up to 80 s: each attempt
    /// fills the queue for a second, and the layer below is a good one (seen in ten minutes of Chromium on 600 kbit/s).
    private static let trial = TimeInterval.seconds(15)
    private static let mostDoublings = 4
    /// After its wait it still needs more headroom; after this many waits since its fall it is forgotten.
    private static let memory: Int64 = 3
    /// By then queues of up to a second and a half are empty.
    private static let draining = TimeInterval.milliseconds(1_500)
    private static let fitting = TimeInterval.seconds(3)
    /// A video keeps its size in too few frames for so long at most, and for so long at least. After a fall to 500 kbit/s the estimate stood below 350
    /// for 0.3 to 1.9 s, and at 355 to 400 for up to 3.5 s now and then (Chromium, five runs).
    private static let mostThinned = TimeInterval.seconds(5)
    private static let leastThinned = TimeInterval.milliseconds(1_500)
    /// A layer begins with a keyframe, which inflates its measured rate for this long.
    private static let keyframeInfluence = TimeInterval.seconds(2)
    /// Neighbouring layers differ by a factor of three, so a factor of eight means that the step was never in question.
    private static let interruption: Int64 = 8
    /// Layers step down as the estimate falls, before and after its largest step.
    private static let stall = TimeInterval.milliseconds(800)

    // MARK: - Limits

    /// The bitrate of the current layer without the effect of its first keyframe.
    func cost(_ measured: Bitrate, at now: MonotonicTime) -> Bitrate {
        guard rose != .zero, now - rose < Self.keyframeInfluence else { return measured }
        return min(measured, .bitsPerSecond(Int64(Double(costAtRise.bitsPerSecond) * 1.1)))
    }

    /// Whether it may rise again at all. If the path carries many times the estimate at the fall, it was interrupted, and waiting would show nothing new;
    /// unless that happens again and again.
    func mayRise(on estimate: Bitrate?, at now: MonotonicTime) -> Bool {
        if fell == .zero || (failed == nil && carries(Self.interruption, asMuch: estimate)) { return true }
        return now - fell >= Self.settling * (failed == nil || isOtherPath(estimate) ? 1 : 2)
    }

    /// Whether it stepped down a moment ago, so that the queue that caused it still exists.
    func isDraining(at now: MonotonicTime) -> Bool { fell != .zero && now - fell < Self.draining }

    /// Whether it may be sent in fewer frames than look smooth rather than become smaller: not while it is being fitted in, and for some seconds only.
    func mayThin(at now: MonotonicTime) -> Bool {
        guard !isBeingFitted(at: now) else { return false }
        return thinned.map { now - $0.since < Self.mostThinned } ?? true
    }

    /// The step that it left to keep its size in too few frames; nil: it did not.
    var stepBeforeThinning: LayerPoint? { thinned?.from }

    /// Whether it may try all frames that look smooth again.
    func mayRegainFrames(at now: MonotonicTime) -> Bool { thinned.map { now - $0.since >= Self.leastThinned } ?? false }

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
        /// The new layer has fewer frames than look smooth, so that the video keeps its size.
        var isThinned: Bool
        /// The path is the limit.
        var isShort: Bool
        var estimate: Bitrate?
        /// Losses limit the estimate.
        var isByLoss: Bool
    }

    /// Records a decision; the first one about a video is never a fall.
    mutating func note(_ change: Change, isFirst: Bool, at now: MonotonicTime) {
        guard !noteThinning(change, at: now) else { return }
        let old = thinned?.from ?? change.from ?? Self.nothing, new = change.to ?? Self.nothing
        let costBefore = thinned?.bitrate ?? change.costBefore
        thinned = nil
        if change.to != nil, change.from == nil { began = now }
        // In its first seconds a video is being fitted in: that is no failed attempt.
        if !isFirst, new < old, change.isShort, now - began >= Self.fitting {
            noteFall(from: old, costBefore, at: now)
            estimateAtFall =
                change.isByLoss && failed?.at == now
                ? change.estimate.map { max($0, estimateAtRise ?? $0) } : change.estimate
        } else if new > old {
            rose = now
            risenTo = new
            roseInSize = new.spatial > old.spatial
            costAtRise = change.cost
            estimateAtRise = change.estimate
        }
    }

    /// Fewer frames for a moment, and their return, are no fall and no rise; true if it was that.
    private mutating func noteThinning(_ change: Change, at now: MonotonicTime) -> Bool {
        if change.isThinned {
            if thinned == nil, let from = change.from { thinned = (from, change.costBefore, now) }
            return true
        }
        guard let thinned, change.to?.spatial == thinned.from.spatial, let new = change.to else { return false }
        // In its fewest frames it waits for the moment at which it may become smaller.
        guard new >= thinned.from else { return new == change.from }
        self.thinned = nil
        return new == thinned.from
    }

    private mutating func noteFall(from old: LayerPoint, _ bitrate: Bitrate, at now: MonotonicTime) {
        fell = now
        if rose != .zero, now - rose < Self.trial, old >= risenTo {
            let before = remembered(at: now).map { $0.layer == old ? $0.attempts : 0 } ?? 0
            // Its keyframe inflates the measured rate.
            let isKnown = !roseInSize || now - rose >= Self.keyframeInfluence
            failed = (old, min(before + 1, Self.mostDoublings), isKnown ? bitrate : .zero, now)
        } else if let failed, old < failed.layer {
            // A further step down, for the same reason or another: the failed step above stays recorded.
        } else {
            failed = nil
        }
    }

    /// The estimate fell at `moment` for a stall that ended at once: a video that stepped down for it need not wait to rise again.
    mutating func forgive(_ moment: MonotonicTime) {
        guard fell != .zero, fell - moment < Self.stall, moment - fell < Self.stall else { return }
        if failed?.at == fell { failed = nil }
        fell = .zero
    }
}

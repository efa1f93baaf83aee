import Forwarding
import MediaControl
import Primitives

/// When one video rose and fell, and which step did not hold: what keeps a layer at the edge from flapping.
struct StepHistory {
    /// When it last came down for want of bandwidth, and when it last rose, to what; `.zero` for never.
    private var fell = MonotonicTime.zero
    private var rose = MonotonicTime.zero
    private var risenTo = Self.nothing
    /// It rose to a larger layer, which begins with a keyframe.
    private var roseInSize = false
    /// When it began to be sent.
    private var began = MonotonicTime.zero
    /// The step that was tried and left soon, how often, what it took then, and when that was last; nil: none. Smaller ones have not failed.
    private var failed: (layer: LayerPoint, attempts: Int, bitrate: Bitrate, at: MonotonicTime)?
    /// The estimate under which it last fell; after an attempt that failed for losses the one that had promised more. Nil: it was not the estimate.
    private var estimateAtFall: Bitrate?
    /// The estimate when it last rose. On links that drop what exceeds them without a queue probes find far too much: being there again proves nothing.
    private var estimateAtRise: Bitrate?
    /// What the layer cost when it was risen to.
    private var costAtRise = Bitrate.zero

    /// Below all layers.
    private static let nothing = LayerPoint(spatial: -1, temporal: -1)
    /// Rising again waits so long (at most one change in 5 s), twice as long where a rise has failed …
    private static let settling = TimeInterval.seconds(5)
    /// … which is one that was followed by a fall within this. The step that failed waits twice as long each time, up to 80 s: each attempt
    /// fills the queue for a second, and the layer below is a good one (seen in ten minutes of Chromium on 600 kbit/s).
    private static let trial = TimeInterval.seconds(15)
    private static let mostDoublings = 4
    /// After its wait it asks for more room; so many waits after its fall it is forgotten.
    private static let memory: Int64 = 3
    /// Queues of up to a second and a half are empty then.
    private static let draining = TimeInterval.milliseconds(1_500)
    private static let fitting = TimeInterval.seconds(3)
    /// A layer begins with a keyframe, which makes a rate measured since then look too high for so long.
    private static let keyframeInfluence = TimeInterval.seconds(2)
    /// Neighbouring layers cost three times as much as each other, so eight times is a step that was never in question.
    private static let interruption: Int64 = 8
    /// Layers come down as the estimate falls, before and after its largest step.
    private static let stall = TimeInterval.milliseconds(800)

    // MARK: - What it allows

    /// What the layer in use costs, seen without its first keyframe.
    func cost(_ measured: Bitrate, at now: MonotonicTime) -> Bitrate {
        guard rose != .zero, now - rose < Self.keyframeInfluence else { return measured }
        return min(measured, .bitsPerSecond(Int64(Double(costAtRise.bitsPerSecond) * 1.1)))
    }

    /// Whether it may rise again at all. A path that carries many times what it carried at the fall was interrupted, and waiting would show nothing new;
    /// unless that happens again and again.
    func mayRise(on estimate: Bitrate?, at now: MonotonicTime) -> Bool {
        if fell == .zero || (failed == nil && carries(Self.interruption, asMuch: estimate)) { return true }
        return now - fell >= Self.settling * (failed == nil || isOtherPath(estimate) ? 1 : 2)
    }

    /// Whether it came down a moment ago, so that the queue it came down for is still there.
    func isDraining(at now: MonotonicTime) -> Bool { fell != .zero && now - fell < Self.draining }

    /// Whether its first keyframe since it became larger is still in the queue. Where many begin, each is fitted in first, and that is no reason to wait.
    func isBeginning(at now: MonotonicTime) -> Bool {
        roseInSize && now - rose < Self.keyframeInfluence && rose - began >= Self.fitting
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

    private func isOtherPath(_ estimate: Bitrate?) -> Bool { carries(2, asMuch: estimate) }

    /// Whether the path carries `factor` times what it carried at the last fall.
    private func carries(_ factor: Int64, asMuch estimate: Bitrate?) -> Bool {
        estimateAtFall.map { (estimate?.bitsPerSecond ?? .max) / factor >= $0.bitsPerSecond } ?? false
    }

    // MARK: - What happened

    /// A decision that has been made.
    struct Change {
        /// Until now, and from now on; nil: nothing is sent.
        var from: LayerPoint?
        var to: LayerPoint?
        /// What the layers take: those until now, and those from now on.
        var costBefore: Bitrate
        var cost: Bitrate
        /// The path is what is short.
        var isShort: Bool
        var estimate: Bitrate?
        /// Losses hold the estimate down.
        var isByLoss: Bool
    }

    /// Notes a decision; the first one about a video is no fall, whatever it is.
    mutating func note(_ change: Change, isFirst: Bool, at now: MonotonicTime) {
        let old = change.from ?? Self.nothing, new = change.to ?? Self.nothing
        if change.to != nil, change.from == nil { began = now }
        // In its first seconds a video is being fitted in: that is no failed attempt.
        if !isFirst, new < old, change.isShort, now - began >= Self.fitting {
            noteFall(from: old, change.costBefore, at: now)
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

    private mutating func noteFall(from old: LayerPoint, _ bitrate: Bitrate, at now: MonotonicTime) {
        fell = now
        if rose != .zero, now - rose < Self.trial, old >= risenTo {
            let before = remembered(at: now).map { $0.layer == old ? $0.attempts : 0 } ?? 0
            // With its keyframe it seems to take more than it does.
            let isKnown = !roseInSize || now - rose >= Self.keyframeInfluence
            failed = (old, min(before + 1, Self.mostDoublings), isKnown ? bitrate : .zero, now)
        } else if let failed, old < failed.layer {
            // Deeper for the same reason, or for another one: what failed above stays as it is.
        } else {
            failed = nil
        }
    }

    /// The estimate fell at `moment` for a stall that was over at once: whoever came down for it need not wait to rise again.
    mutating func forgive(_ moment: MonotonicTime) {
        guard fell != .zero, fell - moment < Self.stall, moment - fell < Self.stall else { return }
        if failed?.at == fell { failed = nil }
        fell = .zero
    }
}

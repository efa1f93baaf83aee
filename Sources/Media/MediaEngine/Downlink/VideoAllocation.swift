import Forwarding
import MediaControl
import Primitives

/// The allocation state of one video subscription: how it is displayed, the decision in force, and its history.
struct VideoAllocation {
    private(set) var display: DisplayPreference
    /// The decision in force, with the latest figures; nil before the first.
    private(set) var record: DecisionRecord?
    /// The next decision counts as the first.
    private var isFirst = true
    private var history = StepHistory()

    init(display: DisplayPreference = DisplayPreference()) { self.display = display }

    /// The layer sent by the decision in force; nil: none.
    var layer: LayerPoint? { record?.layer?.point }

    /// It exceeds the number of videos that the subscriber may have.
    var isSurplus: Bool { if case .tooManyVideos = record?.reason { true } else { false } }

    /// Nothing of it is sent for lack of bandwidth.
    var isHeld: Bool { record.map { $0.layer == nil && $0.reason.holdsVideo } ?? false }

    /// It is sent with the fewest frames of its size until it may become smaller.
    private(set) var isAboutToShrink = false
    /// Until then it has only some of the frames of the size that it grew to.
    private var fewFramesUntil = MonotonicTime.zero

    /// How long a larger size has few frames if others share its network: as long as none of the others grows, and until the queue shows, after the keyframe
    /// and a report, whether it was too much.
    private static let fewFrames = TimeSpan.seconds(2)

    /// It began a moment ago: its layers are being tried.
    func isBeingFitted(at now: MonotonicTime) -> Bool { history.isBeingFitted(at: now) }

    mutating func setDisplay(_ display: DisplayPreference) { self.display = display }

    /// The policy has changed: the next decision is applied even if it is the same.
    mutating func invalidate() { isFirst = true }

    /// Completes the allocation request with the state kept here.
    mutating func fill(_ request: inout AllocationRequest, over path: PathCondition, at now: MonotonicTime) {
        isAboutToShrink = false
        if let moment = path.wrongFall { history.forgive(moment) }
        for index in request.offers.indices where request.offers[index].point == layer {
            request.offers[index].bitrate = history.cost(request.offers[index].bitrate, at: now)
        }
        request.limits.framesPerSecond = display.framesPerSecond
        request.viewerPriority = display.priority
        request.isPinned = display.isPinned
        request.current = layer
        request.mayRise = history.mayRise(on: path.estimate, at: now)
        request.isDraining = history.isDraining(at: now)
        // With the fewest frames already, it waits for the moment at which it may become smaller, unless it is thinned.
        let hasFewer = request.offers.contains {
            $0.bitrate > .zero && $0.point.spatial == layer?.spatial && $0.point.temporal < layer?.temporal ?? 0
        }
        request.mayThin = (hasFewer || history.stepBeforeThinning != nil) && history.mayThin(at: now)
        request.mayRegainFrames = history.mayRegainFrames(at: now)
        // A receiver's own estimate (REMB) does not reflect the keyframe's queue.
        request.isBeginning = path.certainty == .settled && history.isBeginning(at: now)
        request.failed = history.failedStep(on: path.estimate, at: now)
    }

    /// Replaces a decision that changes the size for bandwidth, unless `mayChange` admits it now (its argument is by how much the video becomes larger; nil: it
    /// becomes smaller). A video that becomes larger waits in its layer, or in the one that it had before it was thinned; one that becomes smaller waits with
    /// the fewest frames of its size; and one that has just become larger with few frames waits for the others. True when it was replaced. A video that cannot
    /// have fewer frames cannot wait, nor can one that has just begun.
    mutating func postpone(
        _ decision: inout AllocationDecision, for request: AllocationRequest, at now: MonotonicTime,
        unless mayChange: (_ raise: Bitrate?) -> Bool
    ) -> Bool {
        guard !history.isBeingFitted(at: now), let layer, let new = decision.layer else { return false }
        let sameSize = request.offers.filter { $0.point.spatial == layer.spatial && $0.bitrate > .zero }
        if new.point.spatial == layer.spatial {
            guard new.point > layer, now < fewFramesUntil, let current = sameSize.first(where: { $0.point == layer })
            else { return false }
            decision.layer = current
            decision.next = new
        } else if new.point.spatial > layer.spatial {
            let step = sameSize.first { $0.point == history.stepBeforeThinning } ?? sameSize.first { $0.point == layer }
            let first = Self.beginning(of: new, for: request)
            guard record?.reason.isShort == true, let current = step,
                !mayChange(.bitsPerSecond(first.bitrate.bitsPerSecond - current.bitrate.bitsPerSecond))
            else { return false }
            decision.layer = current
            decision.next = new
        } else {
            guard decision.reason.isShort, sameSize.count > 1, !mayChange(nil) else { return false }
            decision.layer = sameSize.min { $0.point.temporal < $1.point.temporal }
            isAboutToShrink = true
        }
        decision.reason = .settling
        return true
    }

    /// Lets a larger size begin with the fewest frames that look smooth, because others share its network: if it is too much, that shows before all frames are
    /// sent, and frames are withdrawn without a keyframe.
    mutating func beginWithFewFrames(
        _ decision: inout AllocationDecision, for request: AllocationRequest, at now: MonotonicTime
    ) {
        guard let new = decision.layer else { return }
        let first = Self.beginning(of: new, for: request)
        guard first != new else { return }
        decision.layer = first
        decision.next = new
        decision.reason = .settling
        fewFramesUntil = now + Self.fewFrames
    }

    private static func beginning(of new: LayerOffer, for request: AllocationRequest) -> LayerOffer {
        guard !request.hint.keepsResolution, let first = request.firstStep(ofSize: new.point.spatial),
            first.point < new.point
        else { return new }
        return first
    }

    /// Puts a decision in force; true when it differs from the former one. `costBefore` is the bitrate of the former layers.
    mutating func apply(
        _ decision: DecisionRecord, isThinned: Bool, costBefore: Bitrate, over path: PathCondition,
        at now: MonotonicTime
    ) -> Bool {
        // It stays thinned while it waits for the moment to become smaller.
        let isThinned = isThinned || isAboutToShrink && history.stepBeforeThinning != nil
        let change = StepHistory.Change(
            from: layer, to: decision.layer?.point, costBefore: costBefore, cost: decision.layer?.bitrate ?? .zero,
            isThinned: isThinned, isShort: decision.reason.isShort && !path.isSilent, estimate: decision.estimate,
            isByLoss: path.isBoundByLoss)
        let isNew = isFirst || change.from != change.to || record.map { !$0.reason.isSame(as: decision.reason) } ?? true
        history.note(change, isFirst: isFirst, at: now)
        record = decision
        isFirst = false
        return isNew
    }
}

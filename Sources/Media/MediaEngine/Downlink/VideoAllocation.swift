import Forwarding
import MediaControl
import Primitives

/// What the allocation holds about one video subscription: how it is shown, the decision in force, and how that came about.
struct VideoAllocation {
    private(set) var display: DisplayPreference
    /// The decision in force, with the figures of the last one; nil before the first.
    private(set) var record: DecisionRecord?
    /// The decision in force is to be made anew as if it were the first.
    private var isFirst = true
    private var history = StepHistory()

    init(display: DisplayPreference = DisplayPreference()) { self.display = display }

    /// What is sent by the decision in force; nil: nothing.
    var layer: LayerPoint? { record?.layer?.point }

    /// More videos are subscribed to than the subscriber may have, and this is one too many.
    var isSurplus: Bool { if case .tooManyVideos = record?.reason { true } else { false } }

    mutating func setDisplay(_ display: DisplayPreference) { self.display = display }

    /// The rules have changed: the next decision is made to hold even where it is the same.
    mutating func invalidate() { isFirst = true }

    /// Completes the allocation's question about the video by what is known of it here.
    mutating func fill(_ request: inout AllocationRequest, over path: PathCondition, at now: MonotonicTime) {
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
        // A receiver's own estimate (REMB) knows nothing of the keyframe's queue.
        request.isYoung = path.certainty == .settled && history.isBeginning(at: now)
        request.failed = history.failedStep(on: path.estimate, at: now)
    }

    /// Puts a decision in force; true when it is another than before. `costBefore` is what the layers until now take.
    mutating func apply(
        _ decision: DecisionRecord, costBefore: Bitrate, over path: PathCondition, at now: MonotonicTime
    ) -> Bool {
        let change = StepHistory.Change(
            from: layer, to: decision.layer?.point, costBefore: costBefore, cost: decision.layer?.bitrate ?? .zero,
            isShort: decision.reason.isShort && !path.isSilent, estimate: decision.estimate,
            isByLoss: path.isBoundByLoss)
        let isNew = isFirst || change.from != change.to || record.map { !$0.reason.isSame(as: decision.reason) } ?? true
        history.note(change, isFirst: isFirst, at: now)
        record = decision
        isFirst = false
        return isNew
    }
}

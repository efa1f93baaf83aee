public import MediaControl
public import Primitives

/// One video subscription as the allocation sees it.
public struct AllocationRequest: Sendable, Hashable {
    public var id: SubscriptionID
    /// All combinations of layers that the publisher sends now, with what they cost.
    public var offers: [LayerOffer]
    public var limits: ViewerLimits
    public var hint: ContentHint
    public var isScreen: Bool
    /// What the publisher proposes.
    public var publisherPriority: TrackPriority
    /// What the viewer asked for; nil: the publisher's.
    public var viewerPriority: TrackPriority?
    /// The viewer pinned it: before everything else.
    public var isPinned: Bool
    /// The room's dominant speaker is its publisher.
    public var isDominant: Bool
    public var blocked: DecisionReason.Block?
    /// What is forwarded now; nil when nothing is.
    public var current: LayerPoint?
    /// False for some time after a step down: rising again would flap. The caller keeps the time.
    public var mayRise: Bool
    /// It came down a moment ago: what it came down for is still in the queue, and the estimate says so once more.
    public var isDraining = false
    /// It became larger a moment ago: the keyframe that it began with is in the queue, and the estimate falls for that.
    public var isYoung = false
    /// The step that was lately risen to and left again; nil: none.
    public var failed: FailedStep?

    /// A step that did not hold: it and those above it wait for longer, and for more room.
    public struct FailedStep: Sendable, Hashable {
        public var layer: LayerPoint
        /// It is too soon for another attempt.
        public var isBarred: Bool
        /// How often it failed.
        public var attempts: Int
        /// What it took when it failed: a camera's rate wavers, and a moment at which it takes less is none to try it again.
        public var bitrate: Bitrate

        public init(layer: LayerPoint, isBarred: Bool, attempts: Int, bitrate: Bitrate) {
            self.layer = layer
            self.isBarred = isBarred
            self.attempts = attempts
            self.bitrate = bitrate
        }

        func includes(_ step: LayerOffer) -> Bool { step.point >= layer }
    }

    public init(
        id: SubscriptionID, offers: [LayerOffer], limits: ViewerLimits = ViewerLimits(), hint: ContentHint = .motion,
        isScreen: Bool = false, publisherPriority: TrackPriority = .standard, viewerPriority: TrackPriority? = nil,
        isPinned: Bool = false, isDominant: Bool = false, blocked: DecisionReason.Block? = nil,
        current: LayerPoint? = nil,
        mayRise: Bool = true
    ) {
        self.id = id
        self.offers = offers
        self.limits = limits
        self.hint = hint
        self.isScreen = isScreen
        self.publisherPriority = publisherPriority
        self.viewerPriority = viewerPriority
        self.isPinned = isPinned
        self.isDominant = isDominant
        self.blocked = blocked
        self.current = current
        self.mayRise = mayRise
    }

    /// What must be there before a step is climbed: its bitrate and `Allocation.riseMargin` of it. Where the path seemed to carry the step
    /// and did not, up to three times the margin, of what it took then, as long as that is no more than a quarter beyond what it takes now.
    public func room(for step: LayerOffer) -> Bitrate {
        var bitrate = step.bitrate, margin = Allocation.riseMargin
        if let failed, failed.includes(step) {
            bitrate = max(bitrate, min(failed.bitrate, .bitsPerSecond(bitrate.bitsPerSecond / 4 * 5)))
            margin *= Double(1 + min(failed.attempts, 2))
        }
        return .bitsPerSecond(Int64(Double(bitrate.bitsPerSecond) * (1 + margin)))
    }

    /// What takes the layers that are forwarded now; zero where nothing is.
    public var currentBitrate: Bitrate {
        offers.first { $0.point == current }?.bitrate ?? .zero
    }

    var priority: TrackPriority { viewerPriority ?? publisherPriority }
}

/// What may be spent, and how.
public struct AllocationRules: Sendable, Hashable {
    /// How importance is weighed.
    public typealias Mode = AllocationMode
    /// What gives way when there is too little.
    public typealias Shortage = ShortagePolicy

    public var mode: Mode
    public var shortage: Shortage
    /// Most pictures sent at a time; nil: no limit.
    public var maximumVideos: Int?
    /// The estimate of the path, less what audio takes.
    public var estimate: Bitrate
    /// The policy's cap on all video of the viewer; nil: none.
    public var cap: Bitrate?
    /// Queues or losses say that the path carries no more. Without a sign of that the estimate only tells how much was tried: what flows already
    /// is not taken back for it, or every picture that grows would be (measured: Chromium going from 360p to 720p outran the estimate, and paused).
    public var isCongested: Bool

    public init(
        mode: Mode = .collaboration, shortage: Shortage = .pause, maximumVideos: Int? = nil, estimate: Bitrate,
        cap: Bitrate? = nil, isCongested: Bool = true
    ) {
        self.mode = mode
        self.shortage = shortage
        self.maximumVideos = maximumVideos
        self.estimate = estimate
        self.cap = cap
        self.isCongested = isCongested
    }

    var budget: Bitrate { cap.map { min($0, estimate) } ?? estimate }
    /// By how much the sum may exceed what the path is believed to carry, though never the cap.
    var oversend: Bitrate { if case .oversend(let most) = shortage { most } else { .zero } }
    var isCapped: Bool { cap.map { $0 < estimate } ?? false }
}

public import MediaControl
public import Primitives

/// One video subscription as input of the allocation.
public struct AllocationRequest: Sendable, Hashable {
    public var id: SubscriptionID
    /// All combinations of layers that the publisher sends now, with their bitrates.
    public var offers: [LayerOffer]
    public var limits: ViewerLimits
    public var hint: ContentHint
    public var isScreen: Bool
    /// The priority that the publisher proposes.
    public var publisherPriority: TrackPriority
    /// The subscriber's priority; nil: the publisher's.
    public var viewerPriority: TrackPriority?
    /// The subscriber pinned it: before everything else.
    public var isPinned: Bool
    /// Its publisher is the room's dominant speaker.
    public var isDominant: Bool
    public var blocked: DecisionReason.Block?
    /// The layer that is forwarded now; nil: none.
    public var current: LayerPoint?
    /// False for some time after a step down, because rising again would flap, and just after it lost frames to keep its size. The caller keeps the time.
    public var mayRise: Bool
    /// It stepped down a moment ago: the excess is still in the queue and lowers the estimate once more.
    public var isDraining = false
    /// It may be sent with too few frames to look smooth before it becomes smaller: bandwidth often comes back within seconds, and each change of size is
    /// visible. The caller keeps the time.
    public var mayThin = false
    /// It has been sent with too few frames for long enough to get all frames of a smooth video back, even if it may not rise otherwise.
    public var mayRegainFrames = false
    /// It became larger a moment ago: the keyframe at its start is in the queue and lowers the estimate.
    public var isBeginning = false
    /// The step that was recently reached and left again; nil: none.
    public var failed: FailedStep?

    /// A step that could not be held: it and all higher steps need a longer wait and more headroom.
    public struct FailedStep: Sendable, Hashable {
        public var layer: LayerPoint
        /// It is too soon for another attempt.
        public var isBarred: Bool
        /// How often it failed.
        public var attempts: Int
        /// Its bitrate when it failed: a camera's rate fluctuates, and a moment of lower rate is no reason to retry.
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

    /// The bandwidth needed to rise to a step: its bitrate and `Allocation.riseMargin` of it. After a failed attempt up to three times the margin,
    /// on its bitrate at that time, as long as that is at most a quarter above its current bitrate.
    public func room(for step: LayerOffer) -> Bitrate {
        var bitrate = step.bitrate, margin = Allocation.riseMargin
        if let failed, failed.includes(step) {
            bitrate = max(bitrate, min(failed.bitrate, .bitsPerSecond(bitrate.bitsPerSecond / 4 * 5)))
            margin *= Double(1 + min(failed.attempts, 2))
        }
        return .bitsPerSecond(Int64(Double(bitrate.bitsPerSecond) * (1 + margin)))
    }

    /// The lowest step of a size; nil: the size is none of its steps.
    public func firstStep(ofSize spatial: Int) -> LayerOffer? {
        Ladder(offers, hint: hint, limits: limits).steps.first { $0.point.spatial == spatial }
    }

    /// The bitrate of the layers that are forwarded now; zero for none.
    public var currentBitrate: Bitrate {
        offers.first { $0.point == current }?.bitrate ?? .zero
    }

    /// The bitrate of everything in it that the subscriber prefers; zero while nothing is offered.
    public var preferredBitrate: Bitrate { limits.apply(to: offers).map(\.bitrate).max() ?? .zero }

    var priority: TrackPriority { viewerPriority ?? publisherPriority }
}

/// The budget, and how it may be spent.
public struct AllocationRules: Sendable, Hashable {
    /// How importance is weighed.
    public typealias Mode = AllocationMode
    /// What to do when bandwidth is short.
    public typealias Shortage = ShortagePolicy

    public var mode: Mode
    public var shortage: Shortage
    /// Maximum number of videos sent at once; nil: no limit.
    public var maximumVideos: Int?
    /// The estimate of the path, less the bitrate of audio.
    public var estimate: Bitrate
    /// The policy's cap on all video of the subscriber; nil: none.
    public var cap: Bitrate?
    /// Queues or losses show that the path carries no more. Without such a sign the estimate only reflects how much was tried, so layers already sent
    /// are not withdrawn for it; otherwise every video that grows would be (measured: Chromium going from 360p to 720p outran the estimate, and paused).
    public var isCongested: Bool
    /// The sum of videos that the path recently did not carry; nil: none.
    public var failedSum: FailedSum?

    /// A sum of bitrates that could not be held: rises to such a sum need a longer wait and more headroom, whichever video would rise.
    public struct FailedSum: Sendable, Hashable {
        /// The highest sum that is clearly less.
        public var most: Bitrate
        /// It is too soon for another attempt.
        public var isBarred: Bool
        /// How often it failed.
        public var attempts: Int

        public init(most: Bitrate, isBarred: Bool, attempts: Int) {
            self.most = most
            self.isBarred = isBarred
            self.attempts = attempts
        }
    }

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
    /// By how much the sum may exceed the estimated capacity, though never the cap.
    var oversend: Bitrate { if case .oversend(let most) = shortage { most } else { .zero } }
    /// The cap, and not the path, is the limit.
    public var isCapped: Bool { cap.map { $0 < estimate } ?? false }
}

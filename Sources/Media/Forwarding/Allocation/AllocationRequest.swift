import MediaControl
public import Primitives

/// How much a picture matters to its viewer. The publisher proposes one, the viewer's own choice wins.
public enum TrackPriority: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case low, standard, high

    /// By weight.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// One video subscription as the allocation sees it.
public struct AllocationRequest: Sendable, Hashable {
    /// Why nothing may be sent, whatever the bandwidth.
    public enum Blocked: Sendable, Hashable {
        /// The viewer paused it, or pauses all video (C10).
        case paused
        /// The viewer does not show it.
        case hidden
        /// The publisher muted it, or sends nothing now.
        case notSent
    }

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
    public var blocked: Blocked?
    /// What is forwarded now; nil when nothing is.
    public var current: CurrentLayer?
    /// False for some time after a step down: rising again would flap (H9). The caller keeps the time.
    public var mayRise: Bool

    /// The layers that are being forwarded.
    public struct CurrentLayer: Sendable, Hashable {
        public var spatial: Int
        public var temporal: Int

        public init(spatial: Int, temporal: Int) {
            self.spatial = spatial
            self.temporal = temporal
        }
    }

    public init(
        id: SubscriptionID, offers: [LayerOffer], limits: ViewerLimits = ViewerLimits(), hint: ContentHint = .motion,
        isScreen: Bool = false, publisherPriority: TrackPriority = .standard, viewerPriority: TrackPriority? = nil,
        isPinned: Bool = false, isDominant: Bool = false, blocked: Blocked? = nil, current: CurrentLayer? = nil,
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

    var priority: TrackPriority { viewerPriority ?? publisherPriority }
}

/// What may be spent, and how.
public struct AllocationRules: Sendable, Hashable {
    /// How what is left after everybody has something is shared. The names are those of Twilio's bandwidth profile.
    ///
    /// Other than there, no mode switches a picture off while another one has more than its lowest step.
    public enum Mode: String, Sendable, Hashable, Codable, CaseIterable {
        /// All alike; priorities are weights, nobody is preferred for speaking.
        case grid
        /// Screens, pinned pictures, the dominant speaker and high priorities get a larger share; the others keep growing too.
        case collaboration
        /// The first in order gets all it can use, then the second, and so on.
        case presentation
    }

    /// What happens to a picture whose lowest step does not fit.
    public enum Shortage: Sendable, Hashable {
        /// It is not sent until it fits.
        case pause
        /// It is sent as long as the sum is over the budget by no more than this.
        case oversend(Bitrate)
    }

    public var mode: Mode
    public var shortage: Shortage
    /// Most pictures sent at a time (C8); nil: no limit.
    public var maximumVideos: Int?
    /// The estimate of the path, less what audio takes.
    public var estimate: Bitrate
    /// The policy's cap on all video of the viewer (B13); nil: none.
    public var cap: Bitrate?

    public init(
        mode: Mode = .collaboration, shortage: Shortage = .pause, maximumVideos: Int? = nil, estimate: Bitrate,
        cap: Bitrate? = nil
    ) {
        self.mode = mode
        self.shortage = shortage
        self.maximumVideos = maximumVideos
        self.estimate = estimate
        self.cap = cap
    }

    var budget: Bitrate { cap.map { min($0, estimate) } ?? estimate }
    var isCapped: Bool { cap.map { $0 < estimate } ?? false }
}

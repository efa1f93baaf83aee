public import Primitives

/// How one peer's bandwidth is shared out among the videos that it receives.
public struct DownlinkPolicy: Sendable, Hashable {
    public var mode = AllocationMode.collaboration
    /// What happens to a picture whose lowest layer does not fit. By default it is sent a little beyond the estimate: a first picture
    /// is worth a short queue.
    public var shortage = ShortagePolicy.oversend(.kilobitsPerSecond(60))
    /// Most pictures sent at a time; nil: no limit.
    public var maximumVideos: Int?
    /// Cap on all video of the peer; nil: none.
    public var maximumBitrate: Bitrate?

    /// The default.
    public init() {}
}

/// How what is left after everybody has something is shared. The names are those of Twilio's bandwidth profile.
///
/// Other than there, no mode switches a picture off while another one has more than its lowest step.
public enum AllocationMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// All alike; priorities are weights, nobody is preferred for speaking.
    case grid
    /// Screens, pinned pictures, the dominant speaker and high priorities get a larger share; the others keep growing too.
    case collaboration
    /// The first in order gets all it can use, then the second, and so on.
    case presentation
}

/// What happens to a picture whose lowest step does not fit.
public enum ShortagePolicy: Sendable, Hashable {
    /// It is not sent until it fits.
    case pause
    /// It is sent as long as the sum is over the budget by no more than this.
    case oversend(Bitrate)
}

/// How much a picture matters to its viewer. The publisher proposes one, the viewer's own choice wins.
public enum TrackPriority: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case low, standard, high

    /// By weight.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    /// The stable word: `low`, `standard`, `high`.
    public var word: String {
        switch self {
        case .low: "low"
        case .standard: "standard"
        case .high: "high"
        }
    }

    /// The priority that `word` names.
    public init?(word: String) {
        guard let priority = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = priority
    }
}

/// What matters in a picture when not everything can be sent. The names are those of MediaStreamTrack's `contentHint`.
public enum ContentHint: String, Sendable, Hashable, Codable, CaseIterable {
    /// A camera or a game: a smaller picture rather than a slower one.
    case motion
    /// A screen with pictures: a slower picture rather than a smaller one.
    case detail
    /// A screen with text: as `detail`.
    case text

    /// Whether the picture keeps its size and gives up frames.
    public var keepsResolution: Bool { self != .motion }
}

/// What a publisher says about a track, beside its description.
public struct TrackTraits: Sendable, Hashable {
    /// nil: by its source, a screen is detail and anything else motion.
    public var hint: ContentHint?
    public var priority = TrackPriority.standard

    /// The default.
    public init() {}
}

/// What a viewer says about one picture, beside the layer that it asks for.
public struct ViewerWish: Sendable, Hashable {
    /// nil: the publisher's.
    public var priority: TrackPriority?
    /// Before everything else.
    public var isPinned = false
    /// Not shown at present.
    public var isHidden = false
    /// Frames per second that are enough; nil: all.
    public var framesPerSecond: Double?

    /// The default.
    public init() {}
}

/// One decision about one picture of one viewer, with its reason.
public struct DecisionRecord: Sendable, Hashable {
    /// When, on the worker's clock. `age` is for readers elsewhere.
    public var time: MonotonicTime
    /// How long ago, when the record was read.
    public var age = TimeInterval.zero
    public var subscription: SubscriptionID
    public var track: TrackID?
    /// What is sent from then on; nil: nothing.
    public var layer: Layer?
    /// The estimate of the viewer's path; nil while nothing limits.
    public var estimate: Bitrate?
    /// A stable word: `best`, `asWished`, `bandwidth`, `capped`, `settling`, `yieldsToScreen`, `oversent`, `shortage`, `tooManyVideos`,
    /// `paused`, `hidden`, `notSent`.
    public var reason: String
    /// The next step; nil at the top.
    public var next: Layer?
    /// What the next step costs, and what there is for it.
    public var needed: Bitrate?
    public var available: Bitrate?

    /// A layer of a picture.
    public struct Layer: Sendable, Hashable {
        public var spatial: Int
        public var temporal: Int
        public var height: Int
        public var framesPerSecond: Double
        public var bitrate: Bitrate

        /// These layers.
        public init(spatial: Int, temporal: Int, height: Int, framesPerSecond: Double, bitrate: Bitrate) {
            self.spatial = spatial
            self.temporal = temporal
            self.height = height
            self.framesPerSecond = framesPerSecond
            self.bitrate = bitrate
        }
    }

    /// A decision.
    public init(
        time: MonotonicTime, subscription: SubscriptionID, track: TrackID?, layer: Layer?, estimate: Bitrate?,
        reason: String
    ) {
        self.time = time
        self.subscription = subscription
        self.track = track
        self.layer = layer
        self.estimate = estimate
        self.reason = reason
    }
}

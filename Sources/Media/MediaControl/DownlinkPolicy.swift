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

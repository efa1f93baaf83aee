public import Primitives

/// How one peer's bandwidth is divided among the videos that it receives.
public struct DownlinkPolicy: Sendable, Hashable {
    public var mode = AllocationMode.collaboration
    /// What to do with a video whose lowest layer does not fit. By default it is sent slightly beyond the estimate: a first frame
    /// is worth a short queue.
    public var shortage = ShortagePolicy.oversend(.kilobitsPerSecond(60))
    /// Maximum videos sent at once; nil: no limit.
    public var maximumVideos: Int?
    /// Cap on all video of the peer; nil: none.
    public var maximumBitrate: Bitrate?

    /// The default.
    public init() {}
}

/// How to divide the bandwidth that is left after every video has its lowest step. The names are those of Twilio's bandwidth profile.
///
/// Unlike there, no mode switches a video off while another one has more than its lowest step.
public enum AllocationMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// All videos are equal; priorities are weights, and speakers are not preferred.
    case grid
    /// Screens, pinned videos, the dominant speaker and high priorities get a larger share; the others keep growing too.
    case collaboration
    /// The first in order gets all it can use, then the second, and so on.
    case presentation
}

/// What to do with a video whose lowest step does not fit.
public enum ShortagePolicy: Sendable, Hashable {
    /// It is not sent until it fits.
    case pause
    /// It is sent as long as the sum is over the budget by no more than this.
    case oversend(Bitrate)
}

/// How much a video matters to its subscriber. The publisher proposes a priority; the subscriber's own choice takes precedence.
public enum TrackPriority: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case low, standard, high

    /// By weight.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    /// The stable name: `low`, `standard`, `high`.
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

/// What to preserve of a video when bandwidth is short. The names are those of MediaStreamTrack's `contentHint`.
public enum ContentHint: String, Sendable, Hashable, Codable, CaseIterable {
    /// A camera or a game: lower resolution before a lower frame rate.
    case motion
    /// A screen with images: a lower frame rate before lower resolution.
    case detail
    /// A screen with text: as `detail`.
    case text

    /// Whether to keep the resolution and reduce the frame rate.
    public var keepsResolution: Bool { self != .motion }
}

/// A publisher's preferences for a track, besides its description.
public struct TrackTraits: Sendable, Hashable {
    /// nil: by its source, detail for a screen and motion for anything else.
    public var hint: ContentHint?
    public var priority = TrackPriority.standard

    /// The default.
    public init() {}
}

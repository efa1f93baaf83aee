/// How a subscriber displays one video, besides its layer preference.
public struct DisplayPreference: Sendable, Hashable {
    /// nil: the publisher's.
    public var priority: TrackPriority?
    /// Pinned: before everything else.
    public var isPinned = false
    /// Currently not displayed.
    public var isHidden = false
    /// Maximum frames per second; nil: no limit.
    public var framesPerSecond: Double?

    /// The default.
    public init() {}
}

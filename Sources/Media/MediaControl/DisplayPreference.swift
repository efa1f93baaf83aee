/// How a subscriber shows one video, beside the layer that it prefers.
public struct DisplayPreference: Sendable, Hashable {
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

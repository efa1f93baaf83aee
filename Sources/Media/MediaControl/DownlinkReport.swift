public import Primitives

/// How one peer's bandwidth is shared out at a moment.
public struct DownlinkReport: Sendable, Hashable {
    /// What the path is believed to carry; nil while nothing is known.
    public var estimate: Bitrate?
    /// What the chosen layers take, audio included.
    public var allocated = Bitrate.zero
    /// What everything that is subscribed to would take.
    public var wanted = Bitrate.zero
    /// What holds for each video, with the figures of the last decision.
    public var videos: [DecisionRecord] = []

    /// Nothing is received.
    public init() {}
}

public import Primitives

/// How one peer's bandwidth is shared out at a moment.
public struct DownlinkReport: Sendable, Hashable {
    /// What the path is believed to carry; nil while nothing is known.
    public var estimate: Bitrate?
    /// What the chosen layers take, sound included.
    public var allocated = Bitrate.zero
    /// What everything that is wanted would take.
    public var wanted = Bitrate.zero
    /// What holds for each picture, with the figures of its last look.
    public var pictures: [DecisionRecord] = []

    /// Nothing is received.
    public init() {}
}

public import Primitives

/// The current division of one peer's bandwidth.
public struct DownlinkReport: Sendable, Hashable {
    /// The estimate of the path; nil while there is none.
    public var estimate: Bitrate?
    /// The bitrate of the selected layers, audio included.
    public var allocated = Bitrate.zero
    /// The bitrate that all subscriptions together could use.
    public var wanted = Bitrate.zero
    /// The decision in force for each video, with the latest figures.
    public var videos: [DecisionRecord] = []

    /// A report without videos.
    public init() {}
}

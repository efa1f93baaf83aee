public import Primitives

/// The division of one peer's bandwidth, and on demand the recorded decisions that led to it.
public struct DownlinkReport: Sendable, Hashable {
    /// The estimate of the path; nil while there is none.
    public var estimate: Bitrate?
    /// The bitrate of the selected layers, audio included.
    public var allocated = Bitrate.zero
    /// The bitrate that all subscriptions together could use.
    public var wanted = Bitrate.zero
    /// The decision in force for each video, with the latest figures.
    public var videos: [DecisionRecord] = []
    /// The last decisions, oldest first; empty unless the history was requested.
    public var decisions: [DecisionRecord] = []
    /// The estimates of the path over the last hour, oldest first; empty unless the history was requested.
    public var estimates: [EstimateRecord] = []

    /// A report without videos.
    public init() {}
}

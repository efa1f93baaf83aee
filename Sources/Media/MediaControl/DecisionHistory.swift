public import Primitives

/// The recorded decisions about one participant's bandwidth.
public struct DecisionHistory: Sendable, Hashable {
    /// The last decisions, oldest first.
    public var decisions: [DecisionRecord] = []
    /// The estimates of the path over the last hour, oldest first.
    public var estimates: [EstimateRecord] = []

    /// An empty history.
    public init() {}
}

/// The range of a path's estimate over some seconds.
public struct EstimateRecord: Sendable, Hashable {
    /// How long before the reading this time span began.
    public var age: TimeInterval
    /// The lowest estimate in it.
    public var least: Bitrate
    /// The highest estimate in it.
    public var most: Bitrate

    /// An estimate between `least` and `most`.
    public init(age: TimeInterval, least: Bitrate, most: Bitrate) {
        self.age = age
        self.least = least
        self.most = most
    }
}

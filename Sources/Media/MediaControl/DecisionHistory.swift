public import Primitives

/// What is remembered of how one participant's bandwidth was shared out.
public struct DecisionHistory: Sendable, Hashable {
    /// The last decisions, oldest first.
    public var decisions: [DecisionRecord] = []
    /// What the path was believed to carry over the last hour, oldest first.
    public var estimates: [EstimateRecord] = []

    /// Nothing is remembered.
    public init() {}
}

/// What a path was believed to carry over some seconds.
public struct EstimateRecord: Sendable, Hashable {
    /// How long ago that time began, when the record was read.
    public var age: TimeInterval
    /// The lowest estimate in it.
    public var least: Bitrate
    /// The highest one.
    public var most: Bitrate

    /// An estimate between `least` and `most`.
    public init(age: TimeInterval, least: Bitrate, most: Bitrate) {
        self.age = age
        self.least = least
        self.most = most
    }
}

public import Primitives

/// The range of a path's estimate over some seconds.
public struct EstimateRecord: Sendable, Hashable {
    /// How long before the reading this time span began.
    public var age: TimeSpan
    /// The lowest estimate in it.
    public var least: Bitrate
    /// The highest estimate in it.
    public var most: Bitrate

    /// An estimate between `least` and `most`.
    public init(age: TimeSpan, least: Bitrate, most: Bitrate) {
        self.age = age
        self.least = least
        self.most = most
    }
}

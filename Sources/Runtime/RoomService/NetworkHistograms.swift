import Primitives

/// How many observations are in each range.
public struct Histogram: Sendable, Hashable {
    /// Upper bounds of the buckets; larger values are counted in one more.
    public let bounds: [Double]
    public private(set) var counts: [UInt64]
    public private(set) var sum = 0.0

    /// Nothing observed yet.
    public init(bounds: [Double]) {
        self.bounds = bounds
        counts = [UInt64](repeating: 0, count: bounds.count + 1)
    }

    /// Adds an observation.
    public mutating func add(_ value: Double) {
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }
}

/// The state of connected participants' networks: one observation of each participant every five seconds.
public struct NetworkHistograms: Sendable, Hashable {
    /// The share of packets lost on the way to subscribers. Repair hides 2 % from most people, and nothing hides 20 %.
    public private(set) var loss = Histogram(bounds: [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
    /// The round-trip time to a participant in seconds. Up to 0.3 s people talk without noticing (ITU-T G.114: 0.15 s one way).
    public private(set) var roundTrip = Histogram(bounds: [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2])
    /// 0 (lost) to 5 (excellent).
    public private(set) var quality = Histogram(bounds: [0, 1, 2, 3, 4, 5])

    /// The estimated bandwidth of the path to a subscriber, in bytes per second: from a voice, over the smallest video, 360p and 720p, to several large videos.
    public private(set) var estimate = Histogram(
        bounds: [6_250, 12_500, 31_250, 62_500, 125_000, 312_500, 625_000, 1_250_000, 3_125_000])

    /// Nothing observed yet.
    public init() {}

    /// Adds the observation of one participant; `loss` is nil if nothing was sent to it, `estimate` if nothing was measured.
    mutating func add(loss: Double?, _ conditions: NetworkConditions, estimate: Bitrate?) {
        if let loss { self.loss.add(loss) }
        if let estimate { self.estimate.add(Double(estimate.bitsPerSecond) / 8) }
        if let roundTrip = conditions.roundTrip { self.roundTrip.add(roundTrip.seconds) }
        quality.add(Double(conditions.quality))
    }
}

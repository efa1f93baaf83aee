/// A round trip time, each new measurement weighed by an eighth (RFC 6298's gain).
public struct RoundTrip: Sendable {
    /// A larger measurement is a clock error.
    private static let most = TimeSpan.seconds(10)

    /// The smoothed time; nil before the first measurement.
    public private(set) var smoothed: TimeSpan?

    public init() {}

    /// Applies a measurement; an impossible one is ignored, and false returned.
    @discardableResult
    public mutating func measured(_ sample: TimeSpan) -> Bool {
        guard sample >= .zero, sample < Self.most else { return false }
        smoothed = smoothed.map { $0 + (sample - $0) / 8 } ?? sample
        return true
    }
}

/// A round trip by reports of the other side, which stop when nothing is sent: it is valid for ten seconds, and the first measurement after that replaces it,
/// because the path may have changed meanwhile.
public struct ReportedRoundTrip: Sendable {
    /// Several reports, which arrive every second or less often; an order of magnitude, not measured.
    private static let validity = TimeSpan.seconds(10)

    private var trips = RoundTrip()
    private var last = MonotonicTime.zero

    public init() {}

    /// Applies a measurement; an impossible one is ignored.
    public mutating func measured(_ sample: TimeSpan, at now: MonotonicTime) {
        if now - last > Self.validity { trips = RoundTrip() }
        if trips.measured(sample) { last = now }
    }

    /// The smoothed time; nil without a measurement in the last ten seconds.
    public func smoothed(at now: MonotonicTime) -> TimeSpan? { now - last > Self.validity ? nil : trips.smoothed }
}

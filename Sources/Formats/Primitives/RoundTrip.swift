/// A round trip time, each new measurement weighed by an eighth (RFC 6298's gain).
public struct RoundTrip: Sendable {
    /// A measurement of more is a clock's fault.
    private static let most = TimeInterval.seconds(10)

    /// The smoothed time; nil before the first measurement.
    public private(set) var smoothed: TimeInterval?

    public init() {}

    /// Weighs a measurement; one that cannot be is ignored, and false returned.
    @discardableResult
    public mutating func measured(_ sample: TimeInterval) -> Bool {
        guard sample >= .zero, sample < Self.most else { return false }
        smoothed = smoothed.map { $0 + (sample - $0) / 8 } ?? sample
        return true
    }
}

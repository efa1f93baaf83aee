import Primitives

/// The receiver's own estimate (REMB, draft-alvestrand-rmcat-remb-03), for receivers without transport-wide feedback, and as a bound beside it where
/// both are sent.
struct ReceiverLimit: Sendable {
    /// Receivers repeat it every second or when it falls; one that says nothing for so long has stopped.
    private static let lifetime = TimeInterval.seconds(10)

    private var value: Double?
    private var told = MonotonicTime.zero

    init() {}

    mutating func take(_ bitsPerSecond: Double, at now: MonotonicTime) {
        value = bitsPerSecond
        told = now
    }

    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - told <= Self.lifetime ? value : nil }
}

import Primitives

/// A receiver's estimate of what it can receive, as in libwebrtc's receivers without transport-wide feedback (draft-alvestrand-rmcat-remb-03): 0.85 of what
/// arrives when packets wait on the path, otherwise 8 % more per second, and never more than one and a half times what arrives. It begins with what arrives.
struct ReceiverEstimate: Sendable {
    private static let interval = TimeSpan.milliseconds(1_000)
    private static let urgent = TimeSpan.milliseconds(200)
    /// A wait longer than a frame causes by itself.
    private static let standing = TimeSpan.milliseconds(60)

    private var bytes = 0
    private var windowStart = MonotonicTime.zero
    private var incoming = 0.0
    private var isWaiting = false
    private var lastSaid = MonotonicTime.zero
    private var value = 0.0

    /// Adds a datagram that had waited at the bottleneck for `wait`; returns the figure to report now, in bits per second.
    mutating func add(_ length: Int, wait: TimeSpan, at now: MonotonicTime) -> Double? {
        bytes += length
        if wait > Self.standing { isWaiting = true }
        if windowStart == .zero { windowStart = now }
        let elapsed = now - windowStart
        guard elapsed >= Self.urgent else { return nil }
        let sample = Double(bytes) * 8 / min(elapsed.seconds, 1)
        incoming = incoming == 0 ? sample : incoming + (sample - incoming) / 3
        windowStart = now
        bytes = 0
        defer { isWaiting = false }
        if isWaiting, value == 0 || 0.85 * incoming < value {
            value = 0.85 * incoming
        } else {
            guard now - lastSaid >= Self.interval else { return nil }
            value = value == 0 ? incoming : min(max(value * 1.08, 10_000), 1.5 * incoming + 10_000)
        }
        lastSaid = now
        return value
    }
}

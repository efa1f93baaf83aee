import Primitives

/// What a receiver says that it can receive, as libwebrtc's receivers without transport-wide feedback do (draft-alvestrand-rmcat-remb-03): 0.85 of what
/// comes when packets wait on the way, else 8 % more a second, and never more than one and a half times what comes. It begins with what comes.
struct ReceiverEstimate: Sendable {
    private static let interval = TimeInterval.milliseconds(1_000)
    private static let urgent = TimeInterval.milliseconds(200)
    /// A wait that is no frame's own.
    private static let standing = TimeInterval.milliseconds(60)

    private var bytes = 0
    private var windowStart = MonotonicTime.zero
    private var incoming = 0.0
    private var isWaiting = false
    private var lastSaid = MonotonicTime.zero
    private var value = 0.0

    /// A datagram came that had waited at the bottleneck for `wait`; the figure to be said now, in bits a second.
    mutating func add(_ length: Int, wait: TimeInterval, at now: MonotonicTime) -> Double? {
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

public import Primitives

/// Between which bounds a receiver chooses how long it holds video back before it shows it: less for a remote control, more for smooth playback on bad
/// networks (http://www.webrtc.org/experiments/rtp-hdrext/playout-delay).
public struct PlayoutDelayBounds: Sendable, Hashable {
    /// What receivers do that were never told anything: libwebrtc waits for at most ten seconds.
    public static let standard = PlayoutDelayBounds(minimum: .zero, maximum: .seconds(10))

    /// What the extension can say: 12 bits of 10 ms.
    public static let longest = TimeInterval.milliseconds(40_950)

    /// In steps of 10 ms; a maximum below the minimum is raised to it.
    public let minimum: TimeInterval
    public let maximum: TimeInterval

    /// Bounds within zero and ``longest``.
    public init(minimum: TimeInterval, maximum: TimeInterval) {
        self.minimum = min(max(minimum, .zero), Self.longest)
        self.maximum = min(max(maximum, self.minimum), Self.longest)
    }

    /// The value of the header extension: minimum and maximum, 12 bits each.
    public var wireValue: UInt32 {
        func steps(_ time: TimeInterval) -> UInt32 { UInt32(truncatingIfNeeded: time.nanoseconds / 10_000_000) }
        return steps(minimum) << 12 | steps(maximum)
    }
}

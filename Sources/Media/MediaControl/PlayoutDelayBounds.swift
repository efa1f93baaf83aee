public import Primitives

/// The bounds within which a receiver chooses how long it delays video before it shows it: low for remote control, high for smooth playback on bad networks
/// (http://www.webrtc.org/experiments/rtp-hdrext/playout-delay).
public struct PlayoutDelayBounds: Sendable, Hashable {
    /// The behaviour of receivers that were given no bounds: libwebrtc waits for at most ten seconds.
    public static let unbounded = PlayoutDelayBounds(minimum: .zero, maximum: .seconds(10))

    /// The range of the extension: 12 bits of 10 ms.
    public static let longest = TimeSpan.milliseconds(40_950)

    /// In steps of 10 ms; a maximum below the minimum is raised to it.
    public let minimum: TimeSpan
    public let maximum: TimeSpan

    /// Bounds within zero and ``longest``.
    public init(minimum: TimeSpan, maximum: TimeSpan) {
        self.minimum = min(max(minimum, .zero), Self.longest)
        self.maximum = min(max(maximum, self.minimum), Self.longest)
    }

    /// The value of the header extension: minimum and maximum, 12 bits each.
    public var wireValue: UInt32 {
        func steps(_ time: TimeSpan) -> UInt32 { UInt32(truncatingIfNeeded: time.nanoseconds / 10_000_000) }
        return steps(minimum) << 12 | steps(maximum)
    }
}

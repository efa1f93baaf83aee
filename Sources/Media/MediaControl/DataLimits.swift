public import Primitives

/// Limits of the data channels of one peer.
public struct DataLimits: Sendable, Hashable {
    /// What browsers accept (256 kB), less 2 kB for what the server adds to a message: its sender and topic.
    public static let usualLongestMessage = 260_096

    /// Largest message that a peer may send, in bytes; announced as `a=max-message-size`. LiveKit's older SDKs send 64,000 whatever is announced.
    public var longestMessage = Self.usualLongestMessage
    /// Bytes of reliable messages that may wait for one peer; above this its channel is closed.
    public var reliableBytes = 4_194_304
    /// From this many of these bytes on, the members that send to it are slowed down, until half of the bytes are left.
    public var congestedBytes = 524_288
    /// Cost of one peer's messages that the control plane may hold; further reliable messages wait in the peer's own buffer, lossy ones only above twice this
    /// cost.
    public var bytesInHand = 65_536
    /// A peer for which others wait must accept this many bytes in this time, or its channel is closed.
    public var slowestProgress = 65_536, patience = TimeSpan.seconds(10)
    /// Bytes of lossy messages that may wait for one peer; above this the oldest are dropped.
    public var lossyBytes = 262_144
    /// Messages that a peer may send per second; further ones wait in its own buffer.
    public var messagesPerSecond = 200
    /// Bytes that a peer may send per second.
    public var bytesPerSecond = 1_048_576

    public init() {}
}

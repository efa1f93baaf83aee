/// Limits of the data channels of one peer.
public struct DataLimits: Sendable, Hashable {
    /// Largest message that a peer may send, in bytes; announced as `a=max-message-size`. LiveKit's older SDKs send 64,000 whatever is announced.
    public var longestMessage = 65_536
    /// Bytes of reliable messages that may wait for one peer; above that its channel is closed.
    public var reliableBytes = 1_048_576
    /// Bytes of lossy messages that may wait for one peer; above that the oldest are dropped.
    public var lossyBytes = 262_144
    /// Messages that a peer may send per second; what exceeds them waits in its own buffer.
    public var messagesPerSecond = 200
    /// Bytes that a peer may send per second.
    public var bytesPerSecond = 524_288

    public init() {}
}

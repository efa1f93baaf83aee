public import Primitives

/// Limits of one peer's data channels; each value is a bound against a hostile or slow peer.
public struct DataChannelSettings: Sendable, Hashable {
    /// The port in both descriptions (RFC 8841 section 5); all known clients use 5000.
    public static let port: UInt16 = 5_000

    /// Largest message that the peer may send, in bytes: announced as `a=max-message-size`, and enforced.
    public var longestMessage = 65_536
    /// Bytes of messages on reliable channels that may wait to be sent or acknowledged; above this the channel is closed.
    public var reliableBytes = 4_194_304
    /// From this many of these bytes on, the peer counts as congested, until half of them are left.
    public var congestedBytes = 524_288
    /// Cost of the messages that the application may hold (``DataChannelSession/release(_:at:)``); above this, further reliable messages stay in the receive
    /// window, which slows the sender down, and above twice this cost lossy ones do, too.
    public var bytesInHand = Int.max
    /// Bytes of messages that may wait on lossy channels; above this the oldest is dropped.
    public var lossyBytes = 262_144
    /// Messages that may wait.
    public var waitingMessages = 4_096
    /// A lossy message that waits longer is dropped.
    public var lossyAge = TimeSpan.milliseconds(100)
    /// Channels of one peer.
    public var channels = 64
    /// Messages that are accepted per second, and at once. Further ones stay in the receive window, which slows the sender down.
    public var messagesPerSecond = 200, messagesAtOnce = 64
    /// Bytes that are accepted per second, and at once.
    public var bytesPerSecond = 524_288, bytesAtOnce = 1_048_576

    public init() {}

    /// Two messages of the largest size, and at least 256 kB: a message must fit, or it would never become complete.
    var window: Int { max(longestMessage * 2, 262_144) }

    var queueLimits: SendQueue.Limits {
        var limits = SendQueue.Limits()
        limits.reliableBytes = reliableBytes
        limits.lossyBytes = lossyBytes
        limits.messages = waitingMessages
        limits.lossyAge = lossyAge
        return limits
    }
}

/// Why an association ended.
public enum SCTPEnd: String, Sendable, Hashable, CaseIterable {
    /// The peer aborted it or shut it down.
    case closedByPeer
    /// The peer violated the protocol or an announced limit.
    case protocolViolation
    /// This side closed it.
    case closed
}

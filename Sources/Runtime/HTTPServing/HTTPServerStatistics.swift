/// Counters and gauges of one listener.
public struct HTTPServerStatistics: Sendable, Hashable {
    /// Open connections, WebSockets included.
    public var connections = 0
    /// Requests in work.
    public var requestsInWork = 0
    /// Requests answered, by class: index 2 counts 2xx and so on.
    public var responses: [UInt64] = [0, 0, 0, 0, 0, 0]
    /// Requests given up because the handler took too long.
    public var requestTimeouts: UInt64 = 0
    /// Requests and connections turned away because there were too many.
    public var overloads: UInt64 = 0
    /// Open WebSockets.
    public var webSockets = 0
    /// WebSockets closed because their reader was too slow.
    public var slowReaders: UInt64 = 0
    /// WebSockets closed because a message was too large or too many waited.
    public var webSocketLimitsHit: UInt64 = 0
    /// Messages received on WebSockets.
    public var messagesReceived: UInt64 = 0
    /// Messages handed to the network on WebSockets.
    public var messagesSent: UInt64 = 0

    /// All zero.
    public init() {}
}

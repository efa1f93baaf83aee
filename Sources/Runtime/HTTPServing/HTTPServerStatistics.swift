/// A limit that was reached: the client beyond it was refused or cut off, or another connection was closed for it.
public enum HTTPLimit: String, Sendable, Hashable, CaseIterable {
    /// All connections: the one that had been idle the longest was closed, or the new one.
    case connections
    /// The connections of one address.
    case addressConnections = "address_connections"
    /// TLS handshakes in progress: the one that had taken the longest was closed.
    case handshakes
    /// All WebSockets: 503.
    case webSockets = "websockets"
    /// The WebSockets of one address: 503.
    case addressWebSockets = "address_websockets"
    /// The system had no descriptor or memory left for a connection.
    case descriptors
    /// The head of a request took too long.
    case headTime = "head_time"
    /// Unfinished bodies: the one that had taken the longest was answered with 408.
    case bodies
    /// The unfinished bodies of one address.
    case addressBodies = "address_bodies"
    /// A body was too slow or took too long.
    case bodyTime = "body_time"
    /// Requests in handlers: one waited for its turn, or was answered with 503.
    case requests
    /// The requests of one address in handlers.
    case addressRequests = "address_requests"
    /// A handler took too long: 504.
    case handlerTime = "handler_time"
    /// A response was read too slowly.
    case responseTime = "response_time"
    /// Streamed responses: one more is answered with 503.
    case streams
    /// A WebSocket's control frames: 1008.
    case controlFrames = "control_frames"
    /// The messages of a WebSocket that wait to be handled: 1008.
    case messages
}

/// Counters and gauges of one listener.
public struct HTTPServerStatistics: Sendable, Hashable {
    /// Open connections, WebSockets included.
    public var connections = 0
    /// The limit of open connections.
    public var connectionLimit = 0
    /// When the certificate in use expires, in seconds since 1970; nil without TLS.
    public var certificateExpiry: Int64?
    /// Connections accepted.
    public var connectionsAccepted: UInt64 = 0
    /// Requests in progress.
    public var requestsInWork = 0
    /// Requests answered, by class: index 2 counts 2xx and so on. A streamed response counts when it begins.
    public var responses: [UInt64] = [0, 0, 0, 0, 0, 0]
    /// Requests refused because they were malformed or ambiguous.
    public var malformedRequests: UInt64 = 0
    /// Requests aborted because the client or the handler took too long.
    public var requestTimeouts: UInt64 = 0
    /// Requests and connections refused because there were too many.
    public var overloads: UInt64 = 0
    /// How often each limit was reached.
    public var limitsReached: [HTTPLimit: UInt64] = [:]
    /// Open WebSockets.
    public var webSockets = 0
    /// Streamed responses in progress.
    public var streams = 0
    /// WebSockets closed because their reader was too slow.
    public var slowReaders: UInt64 = 0
    /// WebSockets closed because a message was too large, too many waited, or control frames came too fast.
    public var webSocketLimitsHit: UInt64 = 0
    /// Messages received on WebSockets.
    public var messagesReceived: UInt64 = 0
    /// Messages sent on WebSockets.
    public var messagesSent: UInt64 = 0

    /// All zero.
    public init() {}

    /// Counts one more answered request.
    mutating func count(_ response: HTTPResponse) { responses[min(5, max(0, response.status / 100))] += 1 }
}

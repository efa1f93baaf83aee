/// A bound that was reached: who asked for more was turned away, given up, or had another one closed for it.
public enum HTTPLimit: String, Sendable, Hashable, CaseIterable {
    /// All connections: the one that had waited the longest was closed, or the new one.
    case connections
    /// The connections of one address.
    case addressConnections = "address_connections"
    /// TLS handshakes that were not over: the one that had taken the longest was closed.
    case handshakes
    /// All WebSockets: 503.
    case webSockets = "websockets"
    /// The WebSockets of one address: 503.
    case addressWebSockets = "address_websockets"
    /// The system had no descriptor or memory left for a connection.
    case descriptors
    /// The head of a request took too long.
    case headTime = "head_time"
    /// Unfinished bodies: the one that had taken the longest was answered 408.
    case bodies
    /// The unfinished bodies of one address.
    case addressBodies = "address_bodies"
    /// A body was too slow or took too long.
    case bodyTime = "body_time"
    /// Requests in handlers: one waited for its turn, or was answered 503.
    case requests
    /// The requests of one address in handlers.
    case addressRequests = "address_requests"
    /// A handler took too long: 504.
    case handlerTime = "handler_time"
    /// A response was read too slowly.
    case responseTime = "response_time"
    /// Responses that go on: one more is answered 503.
    case streams
    /// A WebSocket's control frames: 1008.
    case controlFrames = "control_frames"
    /// The messages of a WebSocket that waited to be handled: 1008.
    case messages
}

/// Counters and gauges of one listener.
public struct HTTPServerStatistics: Sendable, Hashable {
    /// Open connections, WebSockets included.
    public var connections = 0
    /// How many there may be.
    public var connectionLimit = 0
    /// When the certificate in use ends, in seconds since 1970; nil without TLS.
    public var certificateExpiry: Int64?
    /// Connections accepted.
    public var connectionsAccepted: UInt64 = 0
    /// Requests in work.
    public var requestsInWork = 0
    /// Requests answered, by class: index 2 counts 2xx and so on. A response that goes on counts when it begins.
    public var responses: [UInt64] = [0, 0, 0, 0, 0, 0]
    /// Requests refused because they were not well-formed or could be read in two ways.
    public var malformedRequests: UInt64 = 0
    /// Requests given up because the client or the handler took too long.
    public var requestTimeouts: UInt64 = 0
    /// Requests and connections turned away because there were too many.
    public var overloads: UInt64 = 0
    /// How often each bound was reached.
    public var limitsReached: [HTTPLimit: UInt64] = [:]
    /// Open WebSockets.
    public var webSockets = 0
    /// Responses in progress that go on until their source ends.
    public var streams = 0
    /// WebSockets closed because their reader was too slow.
    public var slowReaders: UInt64 = 0
    /// WebSockets closed because a message was too large, too many waited, or control frames came too fast.
    public var webSocketLimitsHit: UInt64 = 0
    /// Messages received on WebSockets.
    public var messagesReceived: UInt64 = 0
    /// Messages handed to the network on WebSockets.
    public var messagesSent: UInt64 = 0

    /// All zero.
    public init() {}

    /// One more request is answered.
    mutating func count(_ response: HTTPResponse) { responses[min(5, max(0, response.status / 100))] += 1 }
}

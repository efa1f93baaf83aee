/// What a client sent.
public enum WebSocketMessage: Sendable, Hashable {
    case text(String)
    case binary([UInt8])
}

/// The answer to an upgrade request, before anything is upgraded.
public enum WebSocketDecision: Sendable {
    /// Upgrade, then run `session` in a task of its own; when it returns the socket is closed with 1000.
    case accept(session: @Sendable (WebSocketConnection) async -> Void)
    /// Stay with HTTP and answer this.
    case refuse(HTTPResponse)
}

/// Why a socket closed.
public struct WebSocketClose: Sendable, Hashable {
    /// The status code (RFC 6455 section 7.4); 1006 where the connection broke without one.
    public var code: UInt16
    /// The reason given, at most 123 bytes.
    public var reason: String

    /// A code and a reason.
    public init(code: UInt16, reason: String) {
        self.code = code
        self.reason = reason
    }
}

/// A path on which WebSockets are opened.
public struct WebSocketRoute: Sendable {
    /// A pattern as in `Router`: "/v1/signal" or "/rooms/{room}".
    public var pattern: String
    /// Subprotocols in order of preference; a client that offers others only is refused. Empty: any client.
    public var protocols: [String]
    /// Looks at the upgrade request (token, limits) and decides.
    public var decide: @Sendable (HTTPRequest) async -> WebSocketDecision

    /// A route with these parts.
    public init(
        _ pattern: String, protocols: [String], decide: @escaping @Sendable (HTTPRequest) async -> WebSocketDecision
    ) {
        self.pattern = pattern
        self.protocols = protocols
        self.decide = decide
    }
}

/// One open WebSocket.
public final class WebSocketConnection: Sendable {
    /// The upgrade request, with the route's parameters.
    public let request: HTTPRequest
    /// The subprotocol that both sides speak; nil when the client named none.
    public let subprotocol: String?
    /// What the client sends, in order; ends when the socket closes. One reader.
    public let messages: AsyncStream<WebSocketMessage>

    init(request: HTTPRequest, subprotocol: String?, messages: AsyncStream<WebSocketMessage>) {
        self.request = request
        self.subprotocol = subprotocol
        self.messages = messages
    }

    /// Queues a text message; never waits.
    ///
    /// false when the socket is closed or its reader so slow that the queue is full; in the latter case the socket is
    /// being closed with 1013.
    @discardableResult
    public func send(_ text: String) -> Bool { false }

    /// Queues a binary message; as `send(_:)`.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool { false }

    /// Sends what is queued, then a close frame. The first call wins.
    public func close(code: UInt16 = 1000, reason: String = "") {}

    /// Whether the socket takes messages.
    public var isOpen: Bool { false }

    /// Why it closed; nil while it is open.
    public var closed: WebSocketClose? { nil }
}

/// A message from a client.
public enum WebSocketMessage: Sendable, Hashable {
    case text(String)
    case binary([UInt8])
}

/// The decision about an upgrade request, before anything is upgraded.
public enum WebSocketDecision: Sendable {
    /// Upgrade, then run `session` in a separate task; when it returns, the socket is closed with 1000. `abandoned` runs instead if the socket does not
    /// open after all: the client has disconnected meanwhile, or the server is about to stop.
    case accept(
        abandoned: (@Sendable () async -> Void)? = nil, session: @Sendable (WebSocketConnection) async -> Void)
    /// Do not upgrade; send this response.
    case refuse(HTTPResponse)
}

/// Why a socket closed.
public struct WebSocketClose: Sendable, Hashable {
    /// The status code (RFC 6455 section 7.4); 1006 if the connection broke without one.
    public var code: UInt16
    /// The reason, at most 123 bytes.
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
    /// Subprotocols in order of preference; a client that offers only others is refused. Empty: any client.
    public var protocols: [String]
    /// Checks the upgrade request (token, limits) and decides.
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

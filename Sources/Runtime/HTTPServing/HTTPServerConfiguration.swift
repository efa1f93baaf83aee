public import Primitives

/// Certificate chain and private key files in PEM form.
public struct TLSFiles: Sendable, Hashable {
    /// The server's certificate, followed by its intermediates.
    public var certificatePath: String
    /// Its private key.
    public var keyPath: String

    /// The two files.
    public init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// One listener with its limits. Every bound has its reason beside it.
public struct HTTPServerConfiguration: Sendable {
    /// The address to listen on: "127.0.0.1", "0.0.0.0", "::" (both families where the machine has IPv6).
    public var host: String
    /// The port; 0 lets the system choose (see `HTTPServer.port`).
    public var port: UInt16
    /// Serves HTTPS and WSS only, when set.
    public var tls: TLSFiles?
    /// Believes X-Forwarded-For, -Proto and -Host of the one proxy in front.
    public var trustsForwardedFields = false
    /// Answers 403 to clients that are not on this machine (C16).
    public var servesLoopbackOnly = false

    /// The largest body: an SDP of a large room is below 200 kB.
    public var maximumBodyBytes = 1 << 20
    /// The longest path with query: access tokens travel in it.
    public var maximumTargetBytes = 8_192
    /// All header fields together.
    public var maximumHeaderBytes = 32_768
    /// Requests in work; more are answered 503.
    public var maximumConcurrentRequests = 1_024
    /// Open connections, WebSockets included; more are closed at once. 30 kB each.
    public var maximumConnections = 20_000
    /// A handler that has not answered is given up with 504.
    public var requestTimeout = TimeInterval.seconds(30)
    /// A connection is closed when the head of its request, TLS handshake included, takes longer: slow radio links need 3 s.
    public var headTimeout = TimeInterval.seconds(10)
    /// A connection on which a request or the next part of one does not come is closed.
    public var idleTimeout = TimeInterval.seconds(60)

    /// The limits of WebSockets on this listener.
    public var webSocket = WebSocketLimits()
    /// Writes the server's own refusals.
    public var refuse: HTTPRefusalWriter = { $0.plainResponse }

    /// A listener on `host` and `port` with the usual limits.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}

/// Limits of one WebSocket.
public struct WebSocketLimits: Sendable, Hashable {
    /// The largest message from a client; a larger one closes the socket with 1009.
    public var maximumMessageBytes = 256 << 10
    /// Messages of a client that wait to be handled; one more closes the socket with 1008.
    public var maximumIncomingMessages = 256
    /// Bytes that wait for a slow reader; more closes the socket with 1013.
    public var maximumQueuedBytes = 1 << 20
    /// Messages that wait for a slow reader; more closes the socket with 1013.
    public var maximumQueuedMessages = 2_048
    /// How often a ping is sent; a socket that answered none of two is closed.
    public var pingInterval = TimeInterval.seconds(20)
    /// How long a closing handshake may take.
    public var closeTimeout = TimeInterval.seconds(3)

    /// The usual limits.
    public init() {}
}

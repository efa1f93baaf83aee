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

/// One listener with its limits. Each limit states its reason.
public struct HTTPServerConfiguration: Sendable {
    /// The address to listen on: "127.0.0.1", "0.0.0.0", "::" (both families if the machine has IPv6).
    public var host: String
    /// The port; 0 lets the system choose (see `HTTPServer.port`).
    public var port: UInt16
    /// If set, serves only HTTPS and WSS.
    public var tls: TLSFiles?
    /// Trusts X-Forwarded-For, -Proto and -Host from the one proxy in front.
    public var trustsForwardedFields = false
    /// Refuses clients that are not on this machine, with 403.
    public var servesLoopbackOnly = false

    /// The largest body: an SDP of a large room is below 200 kB.
    public var maximumBodyBytes = 1 << 20
    /// The longest path with query: it may contain access tokens, and LiveKit's clients put their first session description there, which is 10 kB
    /// and more, uncompressed.
    public var maximumTargetBytes = 65_536
    /// The size of all header fields together.
    public var maximumHeaderBytes = 32_768
    /// Requests before a connection is closed after its response: memory that a client occupies is freed with it.
    public var maximumRequestsPerConnection = 1_000

    /// Open connections, WebSockets included: 8 kB each, 15 kB with TLS. At the limit, the connection that has waited for a request the longest is closed for
    /// each new one; if none waits, the new one is closed.
    public var maximumConnections = 20_000
    /// Connections of one address (of one IPv6 /64), without WebSockets: a school behind one address loads the page at once. At the limit, the one
    /// that has waited the longest is closed for each new one. No limit behind a trusted proxy, which is one address.
    public var maximumConnectionsPerAddress = 1_024
    /// TLS handshakes in progress: 48 kB each. At the limit, the one that has taken the longest is closed for each new one.
    public var maximumHandshakes = 4_096
    /// WebSockets. No separate limit if the listener exists for them; if it also serves requests, these need connections, too.
    public var maximumWebSockets = Int.max
    /// WebSockets of one address, and never more than half of all connections: a company behind one address has fewer viewers.
    public var maximumWebSocketsPerAddress = 10_000
    /// Requests whose body has arrived in part: at most 256 MiB. At the limit, the one that has taken the longest is answered with 408 for each new one.
    public var maximumBodies = 256
    /// The same for one address.
    public var maximumBodiesPerAddress = 64
    /// The same for clients without a token, which are counted separately.
    public var maximumUnknownBodies = 64
    /// The same for one address of these.
    public var maximumUnknownBodiesPerAddress = 16
    /// Requests in handlers at a time; more wait for their turn.
    public var maximumConcurrentRequests = 1_024
    /// The same for one address.
    public var maximumConcurrentRequestsPerAddress = 256

    /// A connection is closed when the head of its request, TLS handshake included, takes longer: slow radio links need 3 s.
    public var headTimeout = TimeSpan.seconds(10)
    /// Streamed responses, such as event streams, and never more than a quarter of all connections: few clients watch a server, and none of them is
    /// closed for a request. Downloads, which anybody with a link may begin, get half of these.
    public var maximumStreams = 1_000
    /// How often a streamed response sends a keep-alive if it has nothing else to send: proxies close silent connections after 60 s.
    public var streamKeepAlive = TimeSpan.seconds(15)
    /// The time that a body or a response has before its rate is checked.
    public var graceTime = TimeSpan.seconds(5)
    /// A body or a response that is slower than this on average is aborted: the slowest links that can carry a call are forty times as fast.
    public var minimumBytesPerSecond = 1_000
    /// A response of which nothing can be written for this long is aborted: a radio link that is down for longer has lost its connection.
    public var stallTimeout = TimeSpan.seconds(10)
    /// A body is aborted after this time at any rate.
    public var bodyTimeout = TimeSpan.seconds(30)
    /// A request that has waited this long for its turn is answered with 503.
    public var queueTimeout = TimeSpan.seconds(5)
    /// A handler that has not responded after this is abandoned, and the request is answered with 504.
    public var requestTimeout = TimeSpan.seconds(30)
    /// A connection without a further request is closed after this: proxies close theirs after 60 s, and the side that closes first loses no request.
    public var idleTimeout = TimeSpan.seconds(75)
    /// The same behind a trusted proxy: Traefik keeps its connections for 90 s, Google's load balancers for 600 s, and they answer requests that they send into
    /// a closing connection with 502. The oldest idle one is closed if there is no room for a new one.
    public var proxyIdleTimeout = TimeSpan.seconds(620)
    /// How long a client may read its last response, and continue to send what is discarded, before the connection is closed.
    public var lingerTimeout = TimeSpan.seconds(5)

    /// The limits of WebSockets on this listener.
    public var webSocket = WebSocketLimits()
    /// Formats the server's own refusals.
    public var refuse: HTTPRefusalWriter = { $0.plainResponse }
    /// Changes them before they are sent, as the router does with all other responses. For an incomplete head, the fields that arrived are known.
    public var finish: Router.ResponseHook = { _, _ in }

    /// A listener on `host` and `port` with the default limits.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// How long a connection may be idle.
    var idleLimit: TimeSpan { trustsForwardedFields ? proxyIdleTimeout : idleTimeout }

    /// The limit of streamed responses.
    var streamLimit: Int { min(maximumStreams, max(1, maximumConnections / 4)) }
}

/// Limits of one WebSocket.
public struct WebSocketLimits: Sendable, Hashable {
    /// The largest message from a client; a larger one closes the socket with 1009. A socket opens only after a route has authorized it. An answer for 256
    /// videos is the longest real message:
    public var maximumMessageBytes =
        // 2 KiB for each section,
        512 << 10
        // two more for each of 20,480 line ends, which JSON writes as four characters,
        + 40 << 10
        // and the rest of the message beside the description.
        + 8 << 10
    /// Messages of a client that wait to be handled; one more closes the socket with 1008.
    public var maximumIncomingMessages = 256
    /// Bytes of messages that wait to be handled: one of the largest and nearly as much again; more close the socket with 1008.
    public var maximumIncomingBytes = 1 << 20
    /// Frames per message; one more closes the socket with 1008. Browsers make one of 128 kB.
    public var maximumFragments = 256
    /// Pings and pongs that a client may send per second, and in a burst; more close the socket with 1008. Libraries send one in 20 s.
    public var maximumControlFramesPerSecond = 10
    public var maximumControlFramesAtOnce = 60
    /// Bytes that wait for a slow reader besides the largest message; more close the socket with 1013.
    public var maximumQueuedBytes = 1 << 20
    /// Messages that wait for a slow reader; more close the socket with 1013.
    public var maximumQueuedMessages = 2_048
    /// How often a ping is sent; a socket that answered neither of two is closed.
    public var pingInterval = TimeSpan.seconds(20)
    /// How long a closing handshake may take.
    public var closeTimeout = TimeSpan.seconds(3)

    /// The default limits.
    public init() {}
}

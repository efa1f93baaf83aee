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
    /// Answers 403 to clients that are not on this machine.
    public var servesLoopbackOnly = false

    /// The largest body: an SDP of a large room is below 200 kB.
    public var maximumBodyBytes = 1 << 20
    /// The longest path with query: access tokens travel in it, and LiveKit's clients put their first session description there, uncompressed 10 kB
    /// and more.
    public var maximumTargetBytes = 65_536
    /// All header fields together.
    public var maximumHeaderBytes = 32_768
    /// Requests before a connection is closed behind its response: what a client leaves behind in memory ends with it.
    public var maximumRequestsPerConnection = 1_000

    /// Open connections, WebSockets included: 8 kB each, 15 kB with TLS. When there are so many, the one that has waited for a request the longest is closed for
    /// each new one; only where none waits the new one is.
    public var maximumConnections = 20_000
    /// Connections of one address (of one IPv6 /64) that are no WebSockets: a school behind one address loads the page at once. The one of them
    /// that has waited the longest is closed for each new one. No bound behind a trusted proxy, which is one address.
    public var maximumConnectionsPerAddress = 1_024
    /// TLS handshakes that are not over: 48 kB each. The one that has taken the longest is closed for each new one.
    public var maximumHandshakes = 4_096
    /// WebSockets. No bound of their own where they are what the listener is for; where they stand beside requests, these need connections, too.
    public var maximumWebSockets = Int.max
    /// WebSockets of one address, and never more than half of all connections: a company behind one address has fewer viewers.
    public var maximumWebSocketsPerAddress = 10_000
    /// Requests whose body has come in part: at most 256 MiB. The one that has taken the longest is answered 408 for each new one.
    public var maximumBodies = 256
    /// Those of one address.
    public var maximumBodiesPerAddress = 64
    /// Those of clients that have shown no token, which stand apart.
    public var maximumUnknownBodies = 64
    /// Those of one address.
    public var maximumUnknownBodiesPerAddress = 16
    /// Requests that a handler works on; more wait for their turn.
    public var maximumConcurrentRequests = 1_024
    /// Those of one address.
    public var maximumConcurrentRequestsPerAddress = 256

    /// A connection is closed when the head of its request, TLS handshake included, takes longer: slow radio links need 3 s.
    public var headTimeout = TimeInterval.seconds(10)
    /// Responses that go on, such as event streams, and never more than a quarter of all connections: those who watch a server are few, and none of them is
    /// closed for a request. Downloads, which anybody with a link may begin, hold half of these.
    public var maximumStreams = 1_000
    /// How often a response that goes on shows a sign of life where it has nothing to tell: proxies close silent connections after 60 s.
    public var streamKeepAlive = TimeInterval.seconds(15)
    /// The time that a body or a response has before its rate counts.
    public var graceTime = TimeInterval.seconds(5)
    /// A body or a response that is slower on the average is given up: the slowest links that carry a call do forty times that.
    public var minimumBytesPerSecond = 1_000
    /// A response of which nothing can be written for so long is given up: a radio link that is gone for longer has lost its connection.
    public var stallTimeout = TimeInterval.seconds(10)
    /// A body is given up after this time at any rate.
    public var bodyTimeout = TimeInterval.seconds(30)
    /// A request that waited so long for its turn is answered 503.
    public var queueTimeout = TimeInterval.seconds(5)
    /// A handler that has not answered is given up with 504.
    public var requestTimeout = TimeInterval.seconds(30)
    /// A connection on which no further request comes is closed: proxies close theirs after 60 s, and whoever closes first loses no request.
    public var idleTimeout = TimeInterval.seconds(75)
    /// The same behind a trusted proxy: Traefik keeps its own for 90 s, Google's load balancers for 600 s, and what they send into one that is being closed they
    /// answer with 502. The oldest idle one is closed where a new one finds no room.
    public var proxyIdleTimeout = TimeInterval.seconds(620)
    /// How long a client may read its last response, and go on sending what nobody reads, before the connection is closed.
    public var lingerTimeout = TimeInterval.seconds(5)

    /// The limits of WebSockets on this listener.
    public var webSocket = WebSocketLimits()
    /// Writes the server's own refusals.
    public var refuse: HTTPRefusalWriter = { $0.plainResponse }
    /// Changes them before they leave, as the router does with all other responses. Of a head that was not read the fields are known that came.
    public var finish: Router.ResponseHook = { _, _ in }

    /// A listener on `host` and `port` with the usual limits.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// How long a connection may be idle.
    var idleLimit: TimeInterval { trustsForwardedFields ? proxyIdleTimeout : idleTimeout }

    /// How many responses that go on there may be.
    var streamLimit: Int { min(maximumStreams, max(1, maximumConnections / 4)) }
}

/// Limits of one WebSocket.
public struct WebSocketLimits: Sendable, Hashable {
    /// The largest message from a client; a larger one closes the socket with 1009. Nobody has a socket before a route has authorized it. An answer for 256 videos is the longest that is sent:
    public var maximumMessageBytes =
        // 2 KiB for each section,
        512 << 10
        // two more for each of 20,480 ends of lines, which JSON writes as four characters,
        + 40 << 10
        // and what stands beside the description.
        + 8 << 10
    /// Messages of a client that wait to be handled; one more closes the socket with 1008.
    public var maximumIncomingMessages = 256
    /// Bytes of messages that wait to be handled: one of the largest and nearly as much beside it; more close the socket with 1008.
    public var maximumIncomingBytes = 1 << 20
    /// Frames that one message may be made of; one more closes the socket with 1008. Browsers make one of 128 kB.
    public var maximumFragments = 256
    /// Pings and pongs that a client may send per second, and at once; more close the socket with 1008. Libraries send one in 20 s.
    public var maximumControlFramesPerSecond = 10
    public var maximumControlFramesAtOnce = 60
    /// Bytes that wait for a slow reader beside the largest message; more closes the socket with 1013.
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

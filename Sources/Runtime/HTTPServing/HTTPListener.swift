import CSoup
import Glibc
import Logging
import Primitives
import Synchronization

/// libsoup's server and all that hangs on it: the actor of the HTTP thread.
actor HTTPListener {
    nonisolated let loop: GLibLoop
    nonisolated let configuration: HTTPServerConfiguration
    nonisolated let handler: HTTPHandler
    nonisolated let webSocketRoutes: [(pattern: PathPattern, route: WebSocketRoute)]
    nonisolated let counters: ServerCounters
    nonisolated let logger: Logger

    var server: OpaquePointer?
    /// Requests from their head to their end, by message.
    var exchanges: [UInt: Exchange] = [:]
    /// Open WebSockets, by their numbers.
    var webSockets: [UInt64: WebSocketSession] = [:]
    /// Those of them that speak without TLS, and the timer that pings all.
    var readable: ReadableSockets?
    var pinger: GLibSource?
    /// Which tenth of them is pinged next.
    var pingTurn: UInt64 = 0
    /// Sockets of connections, each with how many sweeps ago it was found closed.
    var sockets: [UInt: Int] = [:]
    /// Connections whose request has not come yet, each with the sweeps it has been waited for.
    var headless: [UInt: Int] = [:]
    var sweeper: GLibSource?
    var sweepsSeldom = false
    /// Sweeps since a socket came or was found closed.
    var sweepsSinceChange = 0
    private var lastID: UInt64 = 0
    /// Waits for the last exchange and WebSocket to end.
    private var drained: CheckedContinuation<Void, Never>?
    private var drainTimer: GLibSource?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        configuration: HTTPServerConfiguration, routes: [WebSocketRoute], handler: @escaping HTTPHandler,
        counters: ServerCounters, logger: Logger
    ) {
        loop = GLibLoop(name: "http")
        self.configuration = configuration
        self.handler = handler
        self.counters = counters
        self.logger = logger
        webSocketRoutes = routes.map { (PathPattern($0.pattern), $0) }
    }

    /// A number that no other exchange or WebSocket has.
    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    /// Binds and listens; the port.
    func listen() throws(HTTPServerError) -> UInt16 {
        let server = makeServer()
        self.server = server
        var options = SoupServerListenOptions(rawValue: 0)
        if let tls = configuration.tls {
            var error: UnsafeMutablePointer<GError>?
            let certificate = g_tls_certificate_new_from_files(tls.certificatePath, tls.keyPath, &error)
            guard let certificate else { throw .invalidCertificate(takeMessage(error)) }
            soup_server_set_tls_certificate(soupServer(server), certificate)
            g_object_unref(certificate)
            options = SOUP_SERVER_LISTEN_HTTPS
        }
        let (socket, port) = try ListeningSocket.open(host: configuration.host, port: configuration.port)
        defer { g_object_unref(socket) }
        var error: UnsafeMutablePointer<GError>?
        guard soup_server_listen_socket(soupServer(server), socket, options, &error) != 0 else {
            throw .cannotListen(takeMessage(error))
        }
        return port
    }

    private func makeServer() -> OpaquePointer {
        // Paths stay as on the wire: a decoded slash would change what a path means.
        var rawPaths = csoup_true_value()
        let name = strdup("raw-paths")
        defer { free(name) }
        var names: UnsafePointer<CChar>? = UnsafePointer(name)
        let object = g_object_new_with_properties(csoup_server_type(), 1, &names, &rawPaths)
        guard let object else { preconditionFailure("GLib makes an object or aborts") }
        let server = OpaquePointer(object)
        soup_server_add_handler(
            soupServer(server), nil, soupHandle, Unmanaged.passUnretained(self).toOpaque(), nil)
        connect(server, "request-started", soupRequestStarted as RequestSignal, self)
        return server
    }

    /// Stops listening, says goodbye to WebSockets, and waits a moment for requests in work.
    func close() async {
        guard let server else { return }
        soup_server_disconnect(soupServer(server))
        for session in webSockets.values { session.connection.close(code: 1001, reason: "the server stops") }
        if !exchanges.isEmpty || !webSockets.isEmpty {
            await withCheckedContinuation { continuation in
                drained = continuation
                drainTimer = GLibSource(every: configuration.webSocket.closeTimeout, on: loop) { [weak self] in
                    self?.assumeIsolated { $0.endDrain() }
                    return false
                }
            }
        }
        for exchange in exchanges.values { if case .waiting(let task) = exchange.phase { task.cancel() } }
        for session in Array(webSockets.values) {
            session.task?.cancel()
            endWebSocket(session, WebSocketClose(code: 1006, reason: ""))
        }
        counters.change { $0.requestsInWork -= exchanges.count }
        exchanges = [:]
        releaseConnections()
        g_object_unref(UnsafeMutableRawPointer(server))
        self.server = nil
    }

    /// Ends the wait of `close()` when nothing is left to wait for.
    func endDrainIfDone() {
        if exchanges.isEmpty && webSockets.isEmpty { endDrain() }
    }

    private func endDrain() {
        drainTimer?.cancel()
        drainTimer = nil
        drained?.resume()
        drained = nil
    }
}

/// libsoup's server has a public base struct, which Swift imports; the rest of its objects are opaque.
func soupServer(_ pointer: OpaquePointer) -> UnsafeMutablePointer<SoupServer> { UnsafeMutablePointer(pointer) }

/// The words of a GError, which is freed.
func takeMessage(_ error: UnsafeMutablePointer<GError>?) -> String {
    guard let error else { return "unknown error" }
    defer { g_error_free(error) }
    return String(cString: error.pointee.message)
}

/// Counters that the loop writes and anyone reads.
final class ServerCounters: Sendable {
    private let values = Mutex(HTTPServerStatistics())

    var statistics: HTTPServerStatistics { values.withLock { $0 } }

    func change(_ change: (inout HTTPServerStatistics) -> Void) { values.withLock { change(&$0) } }
}

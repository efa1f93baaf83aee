public import Logging

/// Why a listener did not start.
public enum HTTPServerError: Error, Sendable, Hashable {
    /// The host is not an IP address.
    case invalidAddress(String)
    /// The certificate or key could not be used; the library's words.
    case invalidCertificate(String)
    /// The socket could not be bound; the library's words.
    case cannotListen(String)
    /// `start` was called twice.
    case alreadyStarted
}

/// One HTTP/1.1 listener with WebSockets and optional TLS, on a thread of its own.
///
/// ```swift
/// let server = HTTPServer(configuration: configuration, logger: logger)
/// try await server.start(webSockets: [route]) { request in await router.handle(request) }
/// …
/// await server.stop()
/// ```
public final class HTTPServer: Sendable {
    private let configuration: HTTPServerConfiguration

    /// A server that does not listen yet.
    public init(configuration: HTTPServerConfiguration, logger: Logger) {
        self.configuration = configuration
    }

    /// Listens and serves. Requests go to `handler` but for upgrades on the paths of `webSockets`.
    public func start(
        webSockets: [WebSocketRoute] = [], handler: @escaping HTTPHandler
    ) async throws(HTTPServerError) {
    }

    /// The port that is listened on; 0 before `start`.
    public var port: UInt16 { 0 }

    /// Counters and gauges.
    public var statistics: HTTPServerStatistics { HTTPServerStatistics() }

    /// Stops listening, closes WebSockets with 1001, gives requests in work a moment, ends the thread.
    public func stop() async {
    }
}

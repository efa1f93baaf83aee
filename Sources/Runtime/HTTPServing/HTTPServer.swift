public import Logging
import NetworkIO
import Primitives
import Synchronization

/// Why a listener did not start.
public enum HTTPServerError: Error, Sendable, Hashable {
    /// The host is not an IP address.
    case invalidAddress(String)
    /// The certificate or key could not be used; with the library's message.
    case invalidCertificate(String)
    /// The socket could not be bound; with the system's message.
    case cannotListen(String)
    /// `start` was called twice.
    case alreadyStarted
}

/// One HTTP/1.1 listener with WebSockets and optional TLS, on a separate thread.
///
/// ```swift
/// let server = HTTPServer(configuration: configuration, logger: logger)
/// try await server.start(webSockets: [route]) { request in await router.handle(request) }
/// …
/// await server.stop()
/// ```
public final class HTTPServer: Sendable {
    private enum Phase {
        case idle
        case starting
        case running(HTTPListener, LoopThread, port: UInt16)
        case stopped
    }

    private let configuration: HTTPServerConfiguration
    private let logger: Logger
    private let clock: @Sendable () -> MonotonicTime
    private let phase = Mutex(Phase.idle)
    private let counters = ServerCounters()

    /// A server that does not listen yet.
    public convenience init(configuration: HTTPServerConfiguration, logger: Logger) {
        self.init(configuration: configuration, logger: logger, clock: MonotonicClock.now)
    }

    /// A server with the time of `clock`, which its loop reads once per turn.
    init(configuration: HTTPServerConfiguration, logger: Logger, clock: @escaping @Sendable () -> MonotonicTime) {
        self.configuration = configuration
        self.logger = logger
        self.clock = clock
    }

    /// Listens and serves. Requests go to `handler`, except those on the paths of `webSockets`; `admission` checks those with a body before it is
    /// read.
    public func start(
        webSockets: [WebSocketRoute] = [], admission: @escaping HTTPAdmission = { _ in .admit(isKnown: false) },
        handler: @escaping HTTPHandler
    ) async throws(HTTPServerError) {
        let mayStart = phase.withLock { phase -> Bool in
            guard case .idle = phase else { return false }
            phase = .starting
            return true
        }
        guard mayStart else { throw .alreadyStarted }
        do throws(HTTPServerError) {
            let (listener, thread) = try makeListener(webSockets, admission, handler)
            do throws(HTTPServerError) {
                let port = try await listener.listen()
                phase.withLock { $0 = .running(listener, thread, port: port) }
                logger.info("listening", ["host": .text(configuration.host), "port": .number(port)])
            } catch {
                await listener.requestStop()
                thread.join()
                throw error
            }
        } catch {
            phase.withLock { $0 = .idle }
            throw error
        }
    }

    private func makeListener(
        _ webSockets: [WebSocketRoute], _ admission: @escaping HTTPAdmission, _ handler: @escaping HTTPHandler
    ) throws(HTTPServerError) -> (HTTPListener, LoopThread) {
        do throws(SystemError) {
            let listener = try HTTPListener(
                configuration: configuration, routes: webSockets, admission: admission, handler: handler,
                counters: counters, logger: logger, clock: clock)
            return (listener, try LoopThread(name: "http", cpu: nil) { listener.run() })
        } catch {
            throw .cannotListen(String(describing: error))
        }
    }

    /// The listening port; 0 before `start` and after `stop`.
    public var port: UInt16 {
        phase.withLock { if case .running(_, _, let port) = $0 { port } else { 0 } }
    }

    /// Counters and gauges.
    public var statistics: HTTPServerStatistics { counters.statistics }

    /// Returns when everything has been done that was due when it was called, by the sockets and by the clock: for tests.
    ///
    /// The loop may be in a turn that read the clock before; it completes that one and a later one before this returns.
    func finishTurn() async {
        let listener = phase.withLock { phase -> HTTPListener? in
            if case .running(let listener, _, _) = phase { listener } else { nil }
        }
        guard let listener else { return }
        // Not three calls: the optimiser makes one stay on the loop if several follow each other.
        for _ in 0..<3 {
            await withCheckedContinuation { passed in Task { await listener.passTurn(passed) } }
        }
    }

    /// Uses another certificate for clients that connect from now on; open connections keep theirs. Nothing changes if it cannot be used.
    public func replaceCertificate(_ files: TLSFiles) async throws(HTTPServerError) {
        let listener = phase.withLock { phase -> HTTPListener? in
            if case .running(let listener, _, _) = phase { listener } else { nil }
        }
        try await listener?.replaceCertificate(files)
    }

    /// Stops listening, closes WebSockets with 1001, gives requests in progress a moment, and ends the thread.
    public func stop() async {
        let running = phase.withLock { phase -> (HTTPListener, LoopThread)? in
            guard case .running(let listener, let thread, _) = phase else { return nil }
            phase = .stopped
            return (listener, thread)
        }
        guard let (listener, thread) = running else { return }
        await listener.close()
        await listener.requestStop()
        // The thread has nothing left to do, so this waits for microseconds.
        thread.join()
    }
}

import Glibc
import Logging
import NetworkIO
import Primitives
import Synchronization

/// The sockets of one server and their state: the actor of the HTTP thread, whose loop is its executor.
actor HTTPListener {
    /// The reserved marks of the readiness set and owners of deadlines; connections and work have numbers above these.
    enum Mark {
        static let wake: UInt64 = 0
        static let listening: UInt64 = 1
        static let acceptAgain: UInt64 = 2
        static let pings: UInt64 = 3
        static let drained: UInt64 = 4
        static let firstNumber: UInt64 = 16
    }

    /// Connections that the kernel completes while the loop is busy: a class joining in one second.
    private static let backlog: Int32 = 1_024

    nonisolated let configuration: HTTPServerConfiguration
    nonisolated let handler: HTTPHandler
    nonisolated let admission: HTTPAdmission
    nonisolated let webSocketRoutes: [(pattern: PathPattern, route: WebSocketRoute)]
    nonisolated let counters: ServerCounters
    nonisolated let logger: Logger
    private nonisolated let executor: LoopExecutor
    /// WebSockets whose queues must be checked, from any thread.
    nonisolated let flushRequests: Mailbox<UInt64>
    nonisolated let readiness: ReadinessSet

    private nonisolated let clock: @Sendable () -> MonotonicTime
    /// The time of this turn.
    private(set) var now: MonotonicTime
    var deadlines = DeadlineQueue()
    var connections: [UInt64: HTTPConnection] = [:]
    private var lastNumber = Mark.firstNumber
    var listening: TCPSocket?
    var tls: TLSContext?
    /// Whether accepting waits for a descriptor.
    var isAcceptPaused = false
    /// All connections that are not WebSockets.
    var plain: Stage
    /// Those that wait for a request, the only ones that are closed for others.
    var waiting = Stage()
    var bodies: UnfinishedBodies
    /// Connections with a TLS handshake in progress.
    var handshakes: Stage
    var slots: HandlerSlots
    var encoder = HTTPResponseEncoder()
    /// Streamed responses.
    var streams = 0
    /// Those whose length is known.
    var downloads = 0
    var webSockets: OpenWebSockets
    var isPinging = false
    var limitLog = LimitLog()
    /// Set when the listener stops: responses close their connections.
    private(set) var isDraining = false
    private var isStopping = false
    private var drained: CheckedContinuation<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(
        configuration: HTTPServerConfiguration, routes: [WebSocketRoute], admission: @escaping HTTPAdmission,
        handler: @escaping HTTPHandler, counters: ServerCounters, logger: Logger,
        clock: @escaping @Sendable () -> MonotonicTime
    ) throws(SystemError) {
        executor = try LoopExecutor()
        readiness = try ReadinessSet()
        flushRequests = Mailbox(wake: executor.wake)
        self.configuration = configuration
        self.admission = admission
        self.handler = handler
        self.counters = counters
        self.logger = logger
        self.clock = clock
        now = clock()
        webSocketRoutes = routes.map { (PathPattern($0.pattern), $0) }
        let isBehindProxy = configuration.trustsForwardedFields
        plain = Stage(limitPerAddress: isBehindProxy ? .max : configuration.maximumConnectionsPerAddress)
        bodies = UnfinishedBodies(configuration)
        handshakes = Stage(limit: configuration.maximumHandshakes)
        slots = HandlerSlots(
            limit: configuration.maximumConcurrentRequests,
            limitPerAddress: configuration.maximumConcurrentRequestsPerAddress)
        webSockets = OpenWebSockets(
            limit: configuration.maximumWebSockets,
            limitPerAddress: min(
                configuration.maximumWebSocketsPerAddress, max(1, configuration.maximumConnections / 2)))
    }

    /// Binds and listens; returns the port.
    func listen() throws(HTTPServerError) -> UInt16 {
        if let files = configuration.tls { try use(files) }
        guard let address = SocketAddress(numeric: configuration.host) else {
            throw .invalidAddress(configuration.host)
        }
        let port = configuration.port
        do throws(SystemError) {
            let socket = try Self.open(SocketAddress(high: address.high, low: address.low, port: port))
            try readiness.add(socket.descriptor, .readable, mark: Mark.listening)
            listening = socket
            counters.change { $0.connectionLimit = configuration.maximumConnections }
            return socket.port
        } catch {
            throw .cannotListen(String(describing: error))
        }
    }

    private static func open(_ address: SocketAddress) throws(SystemError) -> TCPSocket {
        do throws(SystemError) {
            return try .listening(at: address, backlog: backlog)
        } catch {
            // "::" on a machine without IPv6 means any IPv4 address.
            guard address.high == 0, address.low == 0, error.code != EADDRINUSE else { throw error }
            return try .listening(at: SocketAddress(ipv4: 0, port: address.port), backlog: backlog)
        }
    }

    /// The loop. Runs on the listener's own thread until `requestStop()`.
    nonisolated func run() {
        executor.adoptThread()
        do throws(SystemError) {
            try readiness.add(executor.wake.descriptor, .readable, mark: Mark.wake)
        } catch {
            preconditionFailure("a new epoll set takes an eventfd: \(error)")
        }
        var jobs: [LoopExecutor.Job] = []
        var ready: [ReadinessSet.Ready] = []
        var next: MonotonicTime? = .zero
        while let deadline = next {
            readiness.wait(into: &ready, until: deadline, now: clock())
            assumeIsolated { $0.now = clock() }
            if ready.contains(where: { $0.mark == Mark.wake }) { executor.runJobs(&jobs) }
            let events = ready
            next = assumeIsolated { $0.turn(events) }
        }
        executor.retire(&jobs)
    }

    /// Lets the loop end after the turn in progress.
    func requestStop() { isStopping = true }

    /// Resumes `passed` in a turn of the loop that begins later.
    func passTurn(_ passed: CheckedContinuation<Void, Never>) { passed.resume() }

    /// The work of the loop each time it wakes; returns when to wake next at the latest.
    private func turn(_ ready: [ReadinessSet.Ready]) -> MonotonicTime? {
        for event in ready {
            switch event.mark {
            case Mark.wake: flushWebSockets()
            case Mark.listening: acceptSome()
            default:
                if let connection = connections[event.mark] { serve(connection, event) }
            }
        }
        while let (moment, owner) = deadlines.removeDue(at: now) { due(owner, moment) }
        return isStopping ? nil : deadlines.next
    }

    private func due(_ owner: UInt64, _ moment: MonotonicTime) {
        switch owner {
        case Mark.acceptAgain: resumeAccepting()
        case Mark.pings: pingSome()
        case Mark.drained: endDrain()
        default:
            guard let connection = connections[owner] else { return workIsLost(owner) }
            if connection.timeout.isOver(at: moment, now: now, of: owner, in: &deadlines) { expire(connection) }
        }
    }

    /// Gives a connection until `deadline`.
    func schedule(_ connection: HTTPConnection, _ deadline: MonotonicTime) {
        connection.timeout.set(deadline, of: connection.id, in: &deadlines)
    }

    /// A number that is never reused.
    func newNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Stops listening, says goodbye to WebSockets, and waits a moment for requests in progress.
    func close() async {
        listening = nil
        isDraining = true
        for connection in connections.values {
            if case .webSocket(let session) = connection.phase {
                session.connection.close(code: 1001, reason: "the server is shutting down")
            } else if case .streaming(let stream) = connection.phase {
                finish(stream, of: connection)
            } else if !connection.isInWork {
                end(connection)
            }
        }
        if !connections.isEmpty {
            deadlines.add(now + configuration.webSocket.closeTimeout, Mark.drained)
            await withCheckedContinuation { drained = $0 }
        }
        for connection in connections.values { end(connection) }
    }

    /// Ends the wait of `close()` when nothing is left to wait for.
    func endDrainIfDone() {
        if isDraining, connections.isEmpty { endDrain() }
    }

    private func endDrain() {
        drained?.resume()
        drained = nil
    }

    /// Counts a limit that was reached and logs it now and then.
    func reached(_ limit: HTTPLimit, _ detail: @autoclosure () -> String) {
        counters.change { $0.limitsReached[limit, default: 0] += 1 }
        guard let count = limitLog.mayWrite(limit, at: now) else { return }
        logger.warning(detail(), ["limit": .text(limit.rawValue), "times": .number(count)])
    }
}

/// The limits that were logged recently: an attack must not fill the log.
struct LimitLog {
    private static let interval = TimeSpan.seconds(10)
    private var entries: [HTTPLimit: (last: MonotonicTime, count: Int)] = [:]

    /// How often it happened since the last line, if another one is due.
    mutating func mayWrite(_ limit: HTTPLimit, at now: MonotonicTime) -> Int? {
        guard let entry = entries[limit] else {
            entries[limit] = (now, 0)
            return 1
        }
        guard now - entry.last >= Self.interval else {
            entries[limit]?.count += 1
            return nil
        }
        entries[limit] = (now, 0)
        return entry.count + 1
    }
}

/// Counters that the loop writes and anyone reads.
final class ServerCounters: Sendable {
    private let values = Mutex(HTTPServerStatistics())

    var statistics: HTTPServerStatistics { values.withLock { $0 } }

    func change(_ change: (inout HTTPServerStatistics) -> Void) { values.withLock { change(&$0) } }
}

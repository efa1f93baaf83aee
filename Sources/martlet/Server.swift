import AccessTokens
import Console
import ControlAPI
import Cryptography
import EdgeSupport
import HTTPServing
import LiveKit
import Logging
import MediaControl
import MediaEngine
import MediaWorkers
import NetworkIO
import OfflineJobs
import Player
import Primitives
import Recorder
import RoomService
import Rooms
import RuleStore
import SessionStore
import Signalling
import Storage
import Telemetry
import Tracing
import WHIP
import Webhooks

/// Everything that runs: workers, rooms, the public and the private listener. Started in that order, stopped in reverse.
struct Server {
    let live: LiveConfiguration
    let workers: MediaWorkerPool
    let rooms: RoomHost
    let recorder: FileRecorder?
    private let recorderTask: Task<Void, Never>?
    private let jobs: JobRunner?
    private let player: FilePlayer?
    let webhooks: WebhookSender
    private let traces: TraceExporter?
    private let tracesTask: Task<Void, Never>?
    private let roomsTask: Task<Void, Never>
    private let webhooksTask: Task<Void, Never>
    private let sessions: SessionDatabase
    private let sessionsTask: Task<Void, Never>
    /// The workers' watchdog, and the keepers of heap, load and addresses.
    private let keepers: [Task<Void, Never>]
    /// nil: clients are sent the configured addresses.
    let addresses: AddressKeeper?
    let publicListener: HTTPServer
    private let privateListener: HTTPServer
    let health: Health
    let logger: Logger

    /// What is in force.
    var configuration: Configuration { live.configuration.value }

    static func start(_ configuration: Configuration) async throws(CommandError) -> Server {
        let output = configuration.log.makeOutput()
        let logger = Logger("martlet", output: output)
        let openFiles = OpenFiles.raiseLimit()
        let live = LiveConfiguration(configuration, openFiles: openFiles)
        let (workers, connections) = try startWorkers(configuration, openFiles: openFiles, logger)
        let database = try openDatabase(configuration)
        let sessions = openSessions(configuration, database)
        let recorder = try openRecorder(configuration, workers, logger)
        let jobs = try openJobs(configuration, recorder, logger)
        let player = try openPlayer(configuration, workers, recorder)
        let rules = RuleDatabase(database, encode: PolicyText.encode, decode: PolicyText.decode)
        let load = LoadGate(limits: configuration.loadLimits(openFiles: openFiles), workers: workers.workers.count)
        let traces = Self.traceExporter(configuration, logger)
        let rooms = RoomHost(
            configuration: configuration.roomsHere, media: WorkerPoolPlane(workers),
            log: RoomLog(logger: logger.named("rooms")).write, stayEnded: { sessions.add($0) },
            traced: Self.adder(to: traces), keep: { await rules.keep($0, logger) }, recorder: recorder, player: player,
            load: load, codecs: Self.codecs)
        try await restore(rules, rooms, logger)
        let webhooks = try await openWebhooks(configuration, database, rooms, recorder, logger)
        let roomsTask = Task { await rooms.run() }
        let webhooksTask = Task { await webhooks.run() }
        let sessionsTask = Task {
            await sessions.run {
                logger.error("past sessions: the database fails; see 'error'", ["error": .text($0.description)])
            }
        }
        let context = EdgeContext(
            rooms: rooms,
            gate: TokenGate(
                verifier: live.verifier, clock: { MonotonicClock.wallMilliseconds() / 1_000 },
                isRevoked: { rooms.revocations.revokes($0, now: MonotonicClock.now()) }),
            iceServers: ICEServers(live.iceServers, now: { MonotonicClock.wallMilliseconds() / 1_000 }),
            server: "martlet/\(Martlet.version)", logger: logger.named("edges"), now: { MonotonicClock.now() })
        let listeners = try configuration.listeners(openFiles: openFiles, media: connections, logger)
        let publicListener = HTTPServer(configuration: listeners.publicHTTP, logger: logger.named("http"))
        let addresses = AddressKeeper(configuration, workers, rooms, logger.named("addresses"))
        // Before anybody joins, because descriptions do not change their addresses later.
        let areKnown = await addresses?.ask() ?? false
        let keepers = [
            Task { await workers.watch() }, Task { await HeapKeeper.run(rooms, publicListener, logger) },
            Task { await LoadKeeper.run(load, workers, rooms) },
            Task { if let jobs { await jobs.run(rooms) } }, Task { if let player { await player.run(rooms) } },
            Task { if let addresses { await addresses.run(areKnown: areKnown) } },
        ]
        let server = Server(
            live: live, workers: workers, rooms: rooms, recorder: recorder,
            recorderTask: recorder.map { recorder in Task { await recorder.run(rooms) } }, jobs: jobs, player: player,
            webhooks: webhooks, traces: traces, tracesTask: traces.map { traces in Task { await traces.run() } },
            roomsTask: roomsTask, webhooksTask: webhooksTask, sessions: sessions, sessionsTask: sessionsTask,
            keepers: keepers, addresses: addresses, publicListener: publicListener,
            privateListener: HTTPServer(configuration: listeners.privateHTTP, logger: logger.named("private")),
            health: Health(), logger: logger)
        try await server.listen(context)
        server.health.becomeReady()
        server.report(configuration)
        return server
    }

    /// How each protocol's clients write messages on data channels.
    private static let codecs = [
        DataProtocol.martlet.name: MessageCoding.codec, DataProtocol.liveKit.name: DataPackets.codec,
    ]

    /// What the log begins with.
    private func report(_ configuration: Configuration) {
        for warning in configuration.warnings { logger.warning("\(warning)") }
        for note in configuration.notes { logger.info("\(note)") }
        logger.info("ready", ["http": .number(publicListener.port), "version": .text(Martlet.version)])
    }

    /// The workers, and how many TCP connections they may have together.
    private static func startWorkers(
        _ configuration: Configuration, openFiles: Int, _ logger: Logger
    ) throws(CommandError) -> (MediaWorkerPool, connections: Int) {
        do {
            let certificate = try Certificate.selfSigned()
            var media = configuration.mediaHere
            media.engine.data.longestMessage = configuration.rooms.maxMessageBytes
            let count = media.workers > 0 ? media.workers : Processors.busyAtOnce()
            media.maximumTCPConnections = ConnectionShare.mediaConnections(
                openFiles: openFiles, workers: count, wanted: media.maximumTCPConnections)
            let pool = try MediaWorkerPool(
                configuration: media, certificate: certificate, logger: logger.named("media"))
            let usesTCP = media.acceptsTCP || media.sharedTCPPort != nil
            return (pool, usesTCP ? count * media.maximumTCPConnections : 0)
        } catch {
            throw CommandError(message: "martlet: \(configuration.explain(error))", exitCode: 1)
        }
    }

    private static func openDatabase(_ configuration: Configuration) throws(CommandError) -> Database {
        do throws(DatabaseError) {
            return try Database(
                path: configuration.databasePath,
                schema: WebhookSender.schema + SessionDatabase.schema + RuleDatabase.schema)
        } catch {
            throw CommandError(error)
        }
    }

    private static func openSessions(_ configuration: Configuration, _ database: Database) -> SessionDatabase {
        SessionDatabase(
            database, kept: configuration.sessionsKept, wallClock: MonotonicClock.wallMilliseconds,
            maxSessions: configuration.databasePath == nil ? SessionDatabase.maxInMemory : SessionDatabase.maxInFile,
            encode: { JSONCoding.encode(SessionModel($0)) }, encodeHistory: { JSONCoding.encode(HistoryModel($0)) })
    }

    /// Restores presets, bans and revocations from before a restart.
    private static func restore(
        _ rules: RuleDatabase, _ rooms: RoomHost, _ logger: Logger
    ) async throws(CommandError) {
        do throws(DatabaseError) {
            let standing = try await rules.load(now: MonotonicClock.wallMilliseconds()) {
                logger.error("a preset is left out: this version cannot read it; put it again", ["preset": .text($0)])
            }
            await rooms.restore(standing)
        } catch {
            throw CommandError(error)
        }
    }

    private static func traceExporter(_ configuration: Configuration, _ logger: Logger) -> TraceExporter? {
        configuration.traceCollector.map { endpoint in
            TraceExporter(
                endpoint: endpoint,
                encode: { traces in
                    var random = SystemRandomNumberGenerator()
                    return JSONCoding.encode(
                        TraceModel(traces, server: "martlet/\(Martlet.version)", using: &random))
                }, logger: logger.named("traces"))
        }
    }

    /// The function that receives traces of joins; nil if they are not exported.
    private static func adder(to traces: TraceExporter?) -> (@Sendable (JoinTrace) -> Void)? {
        guard let traces else { return nil }
        return { traces.add($0) }
    }

    private static func openWebhooks(
        _ configuration: Configuration, _ database: Database, _ rooms: RoomHost, _ recorder: FileRecorder?,
        _ logger: Logger
    ) async throws(CommandError) -> WebhookSender {
        let liveKit = WebhookTranslator { sid in recorder?[sid] }
        let webhooks = WebhookSender(
            of: rooms, database: database, keys: configuration.apiKeys,
            allowsPrivate: configuration.webhooksAllowPrivate,
            encode: { entry, formats in
                var messages = [
                    Webhook.Format.liveKit: liveKit.messages(
                        for: entry, areWanted: formats.contains(.liveKit)
                    ).map {
                        WebhookMessage(id: $0.id, type: $0.type.rawValue, body: $0.body)
                    }
                ]
                if formats.contains(.martlet) {
                    let model = EventModel(entry)
                    messages[.martlet] = [
                        WebhookMessage(id: model.id, type: model.type, body: JSONCoding.encode(model))
                    ]
                }
                return messages
            }, wallClock: MonotonicClock.wallMilliseconds, logger: logger.named("webhooks"))
        do throws(DatabaseError) {
            try await webhooks.load()
        } catch {
            throw CommandError(error)
        }
        return webhooks
    }

    private func listen(_ context: EdgeContext) async throws(CommandError) {
        let signalling = SignallingEdge(context: context, limits: configuration.publicHTTP.webSocket)
        let liveKit = LiveKitEdge(context: context)
        let api = controlAPI(context)
        let publicRouter = publicRoutes(context, signalling, liveKit, api)
        var privateRouter = Router(refuse: { Problem($0).response })
        TelemetryEdge(
            context: context, webhooks: webhooks, traces: traces, workers: workers, recorder: recorder, jobs: jobs,
            player: player, listener: publicListener, health: health, version: Martlet.version
        ).register(on: &privateRouter)
        let isPrivate = configuration.apiListener == .privateOne
        if isPrivate { registerAPIs(api, context, on: &privateRouter) }
        let privateRoutes = privateRouter
        let (apiSockets, publicSockets) = (api.webSocketRoutes, [signalling.webSocketRoute] + liveKit.webSocketRoutes)
        try await start(privateListener, .privateOne, privateRoutes, isPrivate ? apiSockets : [])
        try await start(
            publicListener, .publicOne, publicRouter, isPrivate ? publicSockets : publicSockets + apiSockets)
    }

    private func start(
        _ listener: HTTPServer, _ which: Configuration.WhichListener, _ router: Router,
        _ webSockets: [WebSocketRoute] = []
    ) async throws(CommandError) {
        do throws(HTTPServerError) {
            try await listener.start(
                webSockets: webSockets, admission: { router.admit($0) }, handler: { await router.handle($0) })
        } catch {
            throw CommandError(message: "martlet: \(configuration.explain(error, which))", exitCode: 1)
        }
    }

    private func controlAPI(_ context: EdgeContext) -> ControlAPIEdge {
        ControlAPIEdge(
            context: context, webhooks: webhooks, sessions: sessions, recorder: recorder, jobs: jobs, player: player,
            callsPerSecond: live.apiCallsPerSecond, node: nodeReporter(), drain: drainer())
    }

    /// Registers what operators and backends call: the control API and LiveKit's server API.
    private func registerAPIs(_ api: ControlAPIEdge, _ context: EdgeContext, on router: inout Router) {
        api.register(on: &router)
        TwirpEdge(context: context, recorder: recorder, callsPerSecond: live.apiCallsPerSecond).register(on: &router)
    }

    private func publicRoutes(
        _ context: EdgeContext, _ signalling: SignallingEdge, _ liveKit: LiveKitEdge, _ api: ControlAPIEdge
    ) -> Router {
        let crossOrigin = CrossOrigin(allowedOrigins: configuration.allowedOrigins)
        var router = Router(refuse: { Problem($0).response }, finish: { crossOrigin.apply($0, &$1) })
        ConsolePage.register(on: &router)
        signalling.register(on: &router)
        liveKit.register(on: &router)
        WHIPEdge(context: context).register(on: &router)
        if configuration.apiListener == .publicOne {
            registerAPIs(api, context, on: &router)
        } else {
            api.registerForClients(on: &router)
        }
        if configuration.isDevelopment {
            let key = Configuration.developmentKey
            DevelopmentTokens(
                verifier: TokenVerifier(configuration), key: key.name, host: configuration.http.host,
                clock: { MonotonicClock.wallMilliseconds() / 1_000 }
            ).register(on: &router)
        }
        return router
    }

    /// What a development server prints: where to go.
    var invitation: String {
        let audience = configuration.servesOtherMachines ? "all machines that can reach it" : "this machine only"
        return """
            Martlet \(Martlet.version) serves \(audience). Open in two browser windows:

                \(configuration.pageAddress(port: publicListener.port))

            Key \(Configuration.developmentKey.name), secret \(Configuration.developmentKey.secret). Press Ctrl-C to stop.
            """
    }

    /// Creates no new rooms and waits, up to the drain's limit, until everybody has left.
    private func drain() async {
        guard configuration.drainTimeout > .zero else { return }
        let end = MonotonicClock.now() + configuration.drainTimeout
        let deadline = MonotonicClock.wallMilliseconds() + configuration.drainTimeout.nanoseconds / 1_000_000
        await rooms.setDrain(DrainNotice(deadline: deadline))
        // Nobody waits for playbacks to end.
        while MonotonicClock.now() < end, await rooms.statistics().participants > player?.statistics.playbacks ?? 0 {
            try? await Task.sleep(for: .milliseconds(250))
        }
    }

    /// The tasks of sockets and event streams send the last events and then close them: a socket that was closed earlier would not get them. A socket that
    /// never joined, and a download, delay this only briefly.
    private func waitForGoodbyes() async {
        let end = MonotonicClock.now() + .seconds(1)
        while publicListener.statistics.webSockets + publicListener.statistics.streams > 0, MonotonicClock.now() < end {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Reports not ready at once, notifies members, closes sockets, joins threads.
    func stop() async {
        logger.info("shutting down")
        health.becomeUnready()
        await drain()
        await rooms.shutDown {
            await Self.announceRecordings(recorder, recorderTask)
            await webhooks.stop()
        }
        await waitForGoodbyes()
        await publicListener.stop()
        roomsTask.cancel()
        player?.stop()
        jobs?.beginStop()
        // Stopping waits for each worker, unless it is known to hang.
        await workers.stop()
        recorder?.stop()
        jobs?.stop()
        for keeper in keepers {
            keeper.cancel()
            await keeper.value
        }
        await roomsTask.value
        await rooms.endStays()
        await webhooksTask.value
        traces?.finish()
        tracesTask?.cancel()
        await tracesTask?.value
        sessions.finish()
        await sessionsTask.value
        await privateListener.stop()
    }
}

extension CommandError {
    /// The error of a database with which the server cannot start.
    init(_ error: DatabaseError) {
        let advice =
            error.isDamaged
            ? "Its file (storage.path) is damaged. Move it away, with those of its name and -wal and -shm: in its place, bring a copy back, or let the server make "
                + "a new one, which lacks the webhooks, presets, bans, revocations and past sessions of this one."
            : "Set storage.path to a file that the server may write."
        self.init(message: "martlet: the database fails: \(error). \(advice)", exitCode: 1)
    }
}

extension Configuration {
    /// The public listener.
    var publicHTTP: HTTPServerConfiguration {
        var result = HTTPServerConfiguration(host: http.host, port: http.port)
        if let tlsCertificatePath, let tlsKeyPath {
            result.tls = TLSFiles(certificatePath: tlsCertificatePath, keyPath: tlsKeyPath)
        }
        result.trustsForwardedFields = trustedProxy
        result.servesLoopbackOnly = !servesOtherMachines
        result.refuse = { Problem($0).response }
        let crossOrigin = CrossOrigin(allowedOrigins: allowedOrigins)
        result.finish = { crossOrigin.apply($0, &$1) }
        return result
    }

    /// The listener for metrics and health.
    var privateHTTP: HTTPServerConfiguration {
        var result = HTTPServerConfiguration(host: privateListener.host, port: privateListener.port)
        result.refuse = { Problem($0).response }
        return result
    }
}

public import EdgeSupport
public import HTTPServing
import MediaControl
public import MediaWorkers
public import OfflineJobs
public import Player
import Primitives
public import Recorder
import RoomService
public import Tracing
public import Webhooks

/// The private listener: `/metrics` for Prometheus, `/healthz` for liveness, `/readyz` for readiness.
public struct TelemetryEdge: Sendable {
    private let rooms: RoomHost
    private let webhooks: WebhookSender
    private let traces: TraceExporter?
    private let workers: MediaWorkerPool
    private let recorder: FileRecorder?
    private let jobs: JobRunner?
    private let player: FilePlayer?
    private let listener: HTTPServer
    private let calls: CallStatistics
    private let health: Health
    private let version: String

    /// Reports on these parts; `listener` is the public one.
    public init(
        context: EdgeContext, webhooks: WebhookSender, traces: TraceExporter?, workers: MediaWorkerPool,
        recorder: FileRecorder? = nil, jobs: JobRunner? = nil, player: FilePlayer? = nil, listener: HTTPServer,
        health: Health, version: String
    ) {
        rooms = context.rooms
        calls = context.calls
        self.webhooks = webhooks
        self.traces = traces
        self.workers = workers
        self.recorder = recorder
        self.jobs = jobs
        self.player = player
        self.listener = listener
        self.health = health
        self.version = version
    }

    /// Adds the routes.
    public func register(on router: inout Router) {
        router.on(.get, "/healthz") { _ in Self.liveness(workers.hungWorkers) }
        router.on(.get, "/readyz") { _ in Self.readiness(isReady: health.isReady, workers.hungWorkers) }
        router.on(.get, "/metrics") { _ in await metrics() }
    }

    /// The process is alive if all its media threads respond.
    static func liveness(_ hung: [MediaWorkerPool.HungWorker]) -> HTTPResponse {
        hung.isEmpty ? HTTPResponse(text: "alive\n") : HTTPResponse(status: 503, text: names(of: hung))
    }

    /// The process is ready if it would accept any join. One for a room of a media thread that hangs is refused; another server would accept it.
    static func readiness(isReady: Bool, _ hung: [MediaWorkerPool.HungWorker]) -> HTTPResponse {
        guard isReady else { return HTTPResponse(status: 503, text: "not ready\n") }
        return hung.isEmpty ? HTTPResponse(text: "ready\n") : HTTPResponse(status: 503, text: names(of: hung))
    }

    private static func names(of hung: [MediaWorkerPool.HungWorker]) -> String {
        hung.map {
            "media worker \($0.index) is not responding: its event loop has been blocked for \(Int($0.stillFor.seconds)) s\n"
        }
        .joined()
    }

    /// A tenth of the time that Prometheus waits for the whole page.
    private static let longestWait = Duration.seconds(1)

    /// What `work` returns; nil if it takes longer than `limit`. It is then no longer waited for, and ends when what it waits for ends.
    static func within<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (values, value) = AsyncStream<Value>.makeStream()
        let working = Task {
            value.yield(await work())
            value.finish()
        }
        let waiting = Task {
            if (try? await Task.sleep(for: limit)) != nil { value.finish() }
        }
        defer {
            working.cancel()
            waiting.cancel()
        }
        for await found in values { return found }
        return nil
    }

    private func metrics() async -> HTTPResponse {
        var page = MetricsPage()
        page.add("info", .gauge, "Version of the server.", [([("version", version)], 1)])
        let readiness = Self.readiness(isReady: health.isReady, workers.hungWorkers)
        page.add(
            "ready", .gauge, "1 while the server accepts new work (the state of /readyz).",
            readiness.status == 200 ? 1 : 0)
        page.add(load: rooms.load.report)
        page.add(rooms: await rooms.statistics())
        let statistics = await workers.statistics()
        page.add(hangsOf: statistics)
        page.add(workers: statistics)
        page.add(tcpOf: statistics.map(\.tcp) + [workers.sharedPortStatistics])
        page.add(http: listener.statistics)
        page.add(calls: calls.counts)
        // If the database fails or hangs, only its own figures are missing.
        let listed = await Self.within(Self.longestWait) { [webhooks] in (try? await webhooks.list()) ?? [] }
        page.add(webhooks: listed ?? [])
        if let recorder { page.add(recorder: recorder.statistics) }
        if let jobs { page.add(jobs: jobs.statistics) }
        if let player { page.add(player: player.statistics) }
        if let traces { page.add(traces: traces.statistics) }
        page.add(process: .now())
        return HTTPResponse(text: page.text, contentType: "text/plain; version=0.0.4; charset=utf-8")
    }
}

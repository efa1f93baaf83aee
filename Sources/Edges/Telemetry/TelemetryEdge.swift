public import HTTPServing
public import MediaWorkers
import Primitives
public import RoomService

/// The private listener: `/metrics` for Prometheus, `/healthz` for liveness, `/readyz` for readiness.
public struct TelemetryEdge: Sendable {
    private let rooms: RoomService
    private let workers: MediaWorkerPool
    private let listener: HTTPServer
    private let health: Health
    private let version: String

    /// Reports on these parts; `listener` is the public one.
    public init(rooms: RoomService, workers: MediaWorkerPool, listener: HTTPServer, health: Health, version: String) {
        self.rooms = rooms
        self.workers = workers
        self.listener = listener
        self.health = health
        self.version = version
    }

    /// Adds the routes.
    public func register(on router: inout Router) {
        router.on(.get, "/healthz") { _ in Self.liveness(workers.hungWorkers) }
        router.on(.get, "/readyz") { _ in
            health.isReady ? HTTPResponse(text: "ready\n") : HTTPResponse(status: 503, text: "not ready\n")
        }
        router.on(.get, "/metrics") { _ in await metrics() }
    }

    /// Alive is a process all of whose media threads turn.
    static func liveness(_ hung: [MediaWorkerPool.HungWorker]) -> HTTPResponse {
        guard !hung.isEmpty else { return HTTPResponse(text: "alive\n") }
        let lines = hung.map {
            "media worker \($0.index) hangs: its loop has not turned for \(Int($0.stillFor.seconds)) s\n"
        }
        return HTTPResponse(status: 503, text: lines.joined())
    }

    private func metrics() async -> HTTPResponse {
        var page = MetricsPage()
        page.add("info", .gauge, "The program.", [([("version", version)], 1)])
        page.add("ready", .gauge, "1 while new work is welcome.", health.isReady ? 1 : 0)
        page.add(rooms: await rooms.statistics())
        let statistics = await workers.statistics()
        page.add(hangsOf: statistics)
        page.add(workers: statistics)
        page.add(http: listener.statistics)
        page.add(process: .now())
        return HTTPResponse(text: page.text, contentType: "text/plain; version=0.0.4; charset=utf-8")
    }
}

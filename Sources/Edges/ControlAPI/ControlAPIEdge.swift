internal import CEmbeddedFiles
public import EdgeSupport
public import HTTPServing
public import OfflineJobs
public import Player
import Primitives
public import Recorder
public import Rooms
public import SessionStore
public import Webhooks

/// The operators' API: JSON under `/v1`, described by `/openapi.json`.
public struct ControlAPIEdge: Sendable {
    private let context: EdgeContext
    private let webhooks: WebhookSender
    private let client: ClientResource
    private let events: EventsResource
    private let resources: [any Resource]

    /// An API over `context`, of which each API key may make `callsPerSecond` calls; `recorder` writes recordings, `jobs` makes files from them and `player`
    /// plays files (nil: there are none), `node` reports on the process, and `drain` begins a drain or (nil) ends it;
    /// it returns false if the process shuts down, which cannot be undone.
    public init(
        context: EdgeContext, webhooks: WebhookSender, sessions: SessionDatabase, recorder: FileRecorder? = nil,
        jobs: JobRunner? = nil, player: FilePlayer? = nil,
        callsPerSecond: Live<Int>,
        node: @escaping @Sendable () async -> NodeReport,
        drain: @escaping @Sendable (DrainNotice?) async -> Bool = { _ in false }
    ) {
        self.context = context
        self.webhooks = webhooks
        let access = APIAccess(context, callsPerSecond: callsPerSecond)
        client = ClientResource(access: access)
        events = EventsResource(access: access)
        resources = [
            NodeResource(access: access, node: node, drain: drain), RoomsResource(access: access),
            PoliciesResource(access: access),
            PresetsResource(access: access), ParticipantsResource(access: access), TracksResource(access: access),
            GuestsResource(access: access), events, RecordingsResource(access: access, recorder: recorder),
            JobsResource(access: access, recorder: recorder, jobs: jobs),
            PlaybacksResource(access: access, player: player, recorder: recorder), CapturesResource(access: access),
            SessionsResource(access: access, sessions: sessions), RevocationsResource(access: access),
            WebhooksResource(access: access, webhooks: webhooks), client,
        ]
    }

    /// Every operation; a test compares this list with `openapi.json`.
    var operations: [Operation] { resources.flatMap(\.operations) }

    /// Events to WebSockets, for `HTTPServer.start`.
    public var webSocketRoutes: [WebSocketRoute] { events.webSocketRoutes }

    /// Adds the routes that clients need, if the API is served on another listener.
    public func registerForClients(on router: inout Router) { add(client.operations, to: &router) }

    private func add(_ operations: [Operation], to router: inout Router) {
        for operation in operations {
            router.route(operation.method, operation.pattern, admission: context.gate.admit, measured(operation))
        }
    }

    private func measured(_ operation: Operation) -> ThrowingHandler {
        let name = "\(operation.method.rawValue) \(operation.pattern)"
        return { [context, webhooks] (request) async throws(Problem) in
            let start = context.now()
            do throws(Problem) {
                let response = try await operation.handler(request)
                // Before a call is answered, the events of its changes are stored for webhooks.
                if operation.method != .get { await webhooks.settle() }
                context.calls.add(name, context.now() - start, refusal: nil)
                return response
            } catch {
                context.calls.add(name, context.now() - start, refusal: error.code)
                throw error
            }
        }
    }

    /// Adds all routes.
    public func register(on router: inout Router) {
        add(operations, to: &router)
        let description = embedded_api_description()
        let content = Array(UnsafeBufferPointer(start: description.bytes, count: Int(description.byte_count)))
        router.on(.get, String(cString: description.path)) { _ in
            HTTPResponse(
                status: 200, headers: ["Content-Type": JSONCoding.contentType, "Cache-Control": "no-cache"],
                body: content)
        }
    }
}

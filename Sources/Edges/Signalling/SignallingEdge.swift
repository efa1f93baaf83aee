public import EdgeSupport
public import HTTPServing
import Primitives
import RoomService
import Rooms

/// `GET /v1/signal`: the WebSocket protocol martlet.v1, described by `Protocol.md` next to this file.
public struct SignallingEdge: Sendable {
    /// The subprotocol's name.
    public static let subprotocol = "martlet.v1"
    /// Where it is served.
    public static let path = "/v1/signal"

    private let context: EdgeContext
    private let limits: WebSocketLimits
    private let eventTexts = EventTexts()

    /// An edge for `context`; `limits` are those of the listener, and announced to clients.
    public init(context: EdgeContext, limits: WebSocketLimits) {
        self.context = context
        self.limits = limits
    }

    /// The upgrade route for `HTTPServer.start`.
    public var webSocketRoute: WebSocketRoute {
        WebSocketRoute(Self.path, protocols: [Self.subprotocol]) { request in
            do throws(Problem) {
                let (claims, origin) = try context.joinClaims(of: request, room: request.query["room"])
                let queryRoom = request.query["room"]
                let (address, userAgent) = (request.remoteAddress, request.clientName)
                let servers = ClientICEServers(
                    context.iceServers, claims: claims, room: queryRoom, origin: request.headers["Origin"])
                return .accept { connection in
                    let session = SignallingSession(
                        context: context, claims: claims, queryRoom: queryRoom, address: address,
                        userAgent: userAgent, origin: origin, hello: hello(servers), iceServers: servers,
                        eventTexts: eventTexts)
                    await session.run(on: connection)
                }
            } catch {
                return .refuse(error.response)
            }
        }
    }

    /// Adds the plain GET, by which a page learns why its upgrade was refused.
    public func register(on router: inout Router) {
        router.route(.get, Self.path) { (request) throws(Problem) in
            _ = try context.gate.claims(of: request, room: request.query["room"])
            try request.checkWebSocket()
            throw Problem(
                426, "upgrade_required", "This is a WebSocket endpoint; the token is valid.",
                headers: ["Upgrade": "websocket"])
        }
    }

    private func hello(_ servers: ClientICEServers) -> Hello {
        let rooms = context.rooms.configuration
        return Hello(
            server: context.server, iceServers: servers.current,
            pingIntervalSeconds: max(1, Int(rooms.keepAliveTimeout.seconds) / 3),
            resumeWindowSeconds: Int(rooms.resumeWindow.seconds), maxMessageBytes: limits.maximumMessageBytes)
    }
}

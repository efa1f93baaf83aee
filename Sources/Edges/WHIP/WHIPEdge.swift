public import EdgeSupport
public import HTTPServing

/// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): publish or play with one HTTP request.
///
/// | request | does |
/// |---|---|
/// | `POST /whip/{room}`, `POST /whip` | publishes; without a room: the token's, else the default one |
/// | `POST /whep/{room}/{identity}` | plays one participant |
/// | `POST /whep/{room}` | plays the dominant speaker, whoever that is |
/// | `PATCH` on the session | trickles candidates or restarts ICE |
/// | `DELETE` on the session | ends it |
public struct WHIPEdge: Sendable {
    let context: EdgeContext

    /// An edge for `context`.
    public init(context: EdgeContext) { self.context = context }

    /// Adds all routes.
    public func register(on router: inout Router) {
        for pattern in ["/whip", "/whip/{room}"] {
            router.route(.post, pattern, admission: context.gate.admit) { (request) async throws(Problem) in
                try await publish(request)
            }
            router.on(.options, pattern) { _ in Self.endpointOptions }
        }
        for pattern in ["/whep/{room}", "/whep/{room}/{identity}"] {
            router.route(.post, pattern, admission: context.gate.admit) { (request) async throws(Problem) in
                try await play(request)
            }
            router.on(.options, pattern) { _ in Self.endpointOptions }
        }
        for pattern in [Origin.whip.sessionPath + "{session}", Origin.whep.sessionPath + "{session}"] {
            router.route(.patch, pattern, admission: context.gate.checkIfPresent) { (request) async throws(Problem) in
                try await patch(request)
            }
            router.route(.delete, pattern, admission: context.gate.checkIfPresent) { (request) async throws(Problem) in
                try await end(request)
            }
            router.on(.options, pattern) { _ in Self.sessionOptions }
        }
    }

    /// Which of the two protocols made a session; decides its URL only.
    enum Origin: Sendable {
        case whip, whep

        /// Where its sessions are. They have one component more than an endpoint with a room, so they hide no room.
        var sessionPath: String {
            switch self {
            case .whip: "/whip/session/"
            case .whep: "/whep/session/"
            }
        }
    }

    static let sdp = "application/sdp"
    static let fragment = "application/trickle-ice-sdpfrag"
    /// The name of the only connection of both in `RoomHost`.
    static let connection = "main"

    private static let endpointOptions = HTTPResponse(
        status: 204, headers: ["Allow": "OPTIONS, POST", "Accept-Post": sdp])
    private static let sessionOptions = HTTPResponse(
        status: 204, headers: ["Allow": "DELETE, OPTIONS, PATCH", "Accept-Patch": fragment])
}

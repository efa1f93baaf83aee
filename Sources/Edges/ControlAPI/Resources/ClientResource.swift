import AccessTokens
import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

/// What clients rather than operators need: it is always on the public listener, wherever the other resources are.
struct ClientResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        [
            .get("/v1/ice-servers", listICEServers),
            .post("/v1/checks", createCheck),
        ]
    }

    /// Creates a room in which a client that may join calls sends a video to itself through the server, with a token for each side.
    func createCheck(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        // Every client that may join may request a check, but must not use up the calls of operators.
        let claims = try authorize(request, budget: "checks") { $0.roomJoin }
        let room = try await asking { () async throws(RoomError) in
            try await context.rooms.openCheck(claims, from: request.remoteAddress)
        }
        let seconds = Int64(PreCallCheck.duration.seconds)
        func token(_ identity: String, publishes: Bool) throws(Problem) -> String {
            var grant = VideoGrant.join(room)
            grant.canPublish = publishes
            grant.canSubscribe = !publishes
            grant.canPublishData = false
            let granted = AccessClaims(apiKey: claims.apiKey, identity: identity, expiresAt: 0, video: grant)
            do throws(AccessTokenError) {
                return try context.gate.mint(granted, seconds: seconds)
            } catch { throw Problem(error) }
        }
        // The ICE servers of the calls that the client may join, not those of the room of the check.
        let servers = context.iceServers.servers(for: claims, room: nil, origin: request.headers["Origin"])
        return .json(
            CheckModel(
                room: room, secondsValid: seconds, senderToken: try token("sender", publishes: true),
                receiverToken: try token("receiver", publishes: false), iceServers: servers), status: 201)
    }

    /// The ICE servers of a client that may join the room in the query or, if that names none, in its token.
    func listICEServers(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = request.query["room"]
        let claims = try context.gate.claims(of: request, room: room)
        if let room { try await asking { () throws(RoomError) in try RoomNames.check(room) } }
        guard claims.video.roomJoin else { throw Problem(AccessTokenError.notPermitted) }
        let origin = request.headers["Origin"]
        return .json(
            ICEServersModel(
                iceServers: context.iceServers.servers(for: claims, room: room, origin: origin),
                lifetimeSeconds: context.iceServers.lifetimeSeconds(for: claims, room: room, origin: origin)))
    }
}

/// A pre-call check as JSON shows it.
private struct CheckModel: Encodable {
    var room: String
    /// How long the room exists and the tokens are valid.
    var secondsValid: Int64
    var senderToken: String
    var receiverToken: String
    var iceServers: [ICEServer]
}

/// ICE servers as JSON shows them.
private struct ICEServersModel: Encodable {
    var iceServers: [ICEServer]
    /// How long their credentials are valid; absent: for ever.
    var lifetimeSeconds: Int64?
}

import AccessTokens
import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

extension ControlAPIEdge {
    /// A room in which a client that may join calls sends itself a video through the server, with a token for each side of it.
    func createCheck(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomJoin }
        let room = try await asking { () async throws(RoomError) in try await context.rooms.openCheck() }
        let seconds = Int64(PreCallCheck.duration.seconds)
        func token(_ identity: String, publishes: Bool) throws(Problem) -> String {
            var grant = VideoGrant.join(room)
            grant.canPublish = publishes
            grant.canSubscribe = !publishes
            grant.canPublishData = false
            return try context.gate.mint(
                AccessClaims(apiKey: claims.apiKey, identity: identity, expiresAt: 0, video: grant),
                secondsValid: seconds)
        }
        // The ICE servers of the calls that the client may join, not those of the room of the check.
        let servers = context.iceServers.servers(for: claims, room: nil, origin: request.headers["Origin"])
        return .json(
            CheckModel(
                room: room, secondsValid: seconds, senderToken: try token("sender", publishes: true),
                receiverToken: try token("receiver", publishes: false), iceServers: servers), status: 201)
    }
}

/// A pre-call check as JSON shows it.
private struct CheckModel: Encodable {
    var room: String
    /// How long the room lasts and the tokens are good.
    var secondsValid: Int64
    var senderToken: String
    var receiverToken: String
    var iceServers: [ICEServer]
}

import EdgeSupport
import HTTPServing
import RoomService
import Rooms

extension WHIPEdge {
    /// Trickles candidates (204) or restarts ICE (200 with the server's new credentials); RFC 9725 section 4.3.
    func patch(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let session = try await session(of: request)
        guard request.contentType == Self.fragment else {
            throw Problem(
                415, "unsupported_media_type", "The body must be of type \(Self.fragment).",
                headers: ["Accept-Patch": Self.fragment])
        }
        guard let condition = EntityTag.Condition(request.headers.values("If-Match")) else {
            throw Problem(428, "precondition_required", "If-Match must name the ETag of the ICE session, or \"*\".")
        }
        guard condition.matches(session.tag) else {
            throw Problem(412, "precondition_failed", "The ICE session has another ETag now.")
        }
        guard let fragment = request.text, !fragment.isEmpty else {
            throw Problem(400, "invalid_sdp", "The body is empty or not UTF-8.")
        }
        // Restarts name no ETag (RFC 9725 section 4.3.3): a client whose network changes may send one again because its answer was lost.
        let restarted = try await asking { () async throws(RoomError) in
            try await context.rooms.fragment(
                session.id, connection: Self.connection, fragment: fragment, mayBeRepeated: condition == .any)
        }
        guard let restarted else { return HTTPResponse(status: 204) }
        return HTTPResponse(
            status: 200, headers: ["Content-Type": Self.fragment, "ETag": EntityTag.field(restarted.iceTag)],
            body: Array(restarted.fragment.utf8))
    }

    /// Ends the session and its connection (RFC 9725 section 4.2).
    func end(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let session = try await session(of: request)
        await context.rooms.leave(session.id)
        return HTTPResponse(status: 200)
    }

    /// The session in the URL, which is unguessable, and its current ICE tag. A token in the request must not be forged.
    private func session(of request: HTTPRequest) async throws(Problem) -> (id: SessionID, tag: String) {
        try context.gate.checkIfPresent(request)
        let id = SessionID(try request.parameter("session"))
        let tag = try await asking { () async throws(RoomError) in
            try await context.rooms.iceTag(id, connection: Self.connection)
        }
        return (id, tag)
    }

    private func asking<Value: Sendable>(
        _ body: () async throws(RoomError) -> Value
    ) async throws(Problem) -> Value {
        do throws(RoomError) {
            return try await body()
        } catch {
            throw Problem(error)
        }
    }
}

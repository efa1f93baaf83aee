import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import Primitives
import RoomService
import Rooms
import SessionStore
import Storage

/// Past stays, and the last hour of a current one.
struct SessionsResource: Resource {
    let access: APIAccess
    private let sessions: SessionDatabase

    init(access: APIAccess, sessions: SessionDatabase) {
        self.access = access
        self.sessions = sessions
    }

    var operations: [Operation] {
        [
            .get("/v1/sessions", listSessions),
            .get("/v1/sessions/{session}", showSession),
            .get("/v1/sessions/{session}/history", showHistory),
            .get("/v1/rooms/{room}/participants/{participant}/history", listSamples),
        ]
    }

    /// Past stays, latest end first, for tokens that may moderate the room, or all rooms.
    func listSessions(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomAdmin }
        var query = SessionDatabase.Query(limit: try request.number("limit", in: 1...1_000) ?? 100)
        query.room = try room(request, claims)
        query.identity = request.query["identity"]
        if let text = request.query["before"] {
            guard let before = SessionDatabase.Place(text) else {
                throw Problem(400, "invalid_request", "The query's before must be what the page before gave as next.")
            }
            query.before = before
        }
        let page = try await stored { [query] () async throws(DatabaseError) in try await sessions.page(query) }
        return .json(
            SessionPageModel(
                sessions: page.bodies.compactMap { try? JSONCoding.decode(SessionModel.self, from: $0) },
                next: page.next?.description))
    }

    func showSession(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse { .json(try await session(request)) }

    /// How the network and media of a past stay performed, until its end.
    func showHistory(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let stay = try await session(request)
        let body = try await stored { () async throws(DatabaseError) in
            try await sessions.history(of: stay.session, in: stay.room)
        }
        guard let body else {
            throw Problem(404, "history_not_kept", "The history of this stay is no longer kept; its summary is.")
        }
        return HTTPResponse(
            status: 200, headers: ["Content-Type": JSONCoding.contentType, "Cache-Control": "no-store"],
            body: body)
    }

    /// The room whose stays are requested; nil: all. With a token for one room it is that room, even if the query names none.
    private func room(_ request: HTTPRequest, _ claims: AccessClaims) throws(Problem) -> String? {
        let asked = request.query["room"]
        try TokenGate.check(claims, areFor: asked)
        guard let own = claims.video.room, !own.isEmpty else { return asked }
        return own
    }

    /// The past stay in the path. A participant that was moved has one in each room: the last one that matches the request and its token.
    private func session(_ request: HTTPRequest) async throws(Problem) -> SessionModel {
        let room = try room(request, try authorize(request) { $0.roomAdmin })
        let name = try request.parameter("session")
        let body = try await stored { () async throws(DatabaseError) in
            try await sessions.summary(of: name, in: room)
        }
        guard let body, let model = try? JSONCoding.decode(SessionModel.self, from: body) else {
            throw Problem(404, "session_not_found", "There is no past stay of this id, or it is no longer kept.")
        }
        return model
    }

    /// How a participant's network and media performed in the last hour.
    func listSamples(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let name = try request.parameter("participant")
        let samples = try await asking { () async throws(RoomError) in
            try await context.rooms.history(of: name, in: room)
        }
        return .json(HistoryModel(samples))
    }

    private func stored<Value: Sendable>(
        _ work: () async throws(DatabaseError) -> Value
    ) async throws(Problem) -> Value {
        do throws(DatabaseError) {
            return try await work()
        } catch {
            throw storageFailed(error.description)
        }
    }

}

private struct SessionPageModel: Encodable {
    var sessions: [SessionModel]
    var next: String?
}

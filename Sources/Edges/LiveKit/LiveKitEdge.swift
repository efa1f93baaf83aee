import AccessTokens
public import EdgeSupport
public import HTTPServing
import Logging
import RoomService
import Rooms

/// LiveKit's signalling, for unmodified SDKs: `/rtc` (two peer connections) and `/rtc/v1` (one).
public struct LiveKitEdge: Sendable {
    private static let signalling: [(path: String, generation: JoinParameters.Generation)] = [
        ("/rtc", .dual), ("/rtc/v1", .single),
    ]

    private let context: EdgeContext

    /// An edge for `context`.
    public init(context: EdgeContext) { self.context = context }

    /// The upgrade routes for `HTTPServer.start`.
    public var webSocketRoutes: [WebSocketRoute] {
        Self.signalling.flatMap { path, generation in
            Self.spellings(of: path).map { path in
                WebSocketRoute(path, protocols: []) { await decide($0, generation) }
            }
        }
    }

    /// Adds the calls by which a client asks why its socket was refused.
    public func register(on router: inout Router) {
        for (path, generation) in Self.signalling {
            for spelling in Self.spellings(of: path + "/validate") {
                router.on(.get, spelling) { request in await validate(request, generation) }
            }
        }
    }

    /// Clients append the path to a URL that ends with a slash, so that there are two.
    private static func spellings(of path: String) -> [String] { [path, "/" + path] }

    private func validate(
        _ request: HTTPRequest, _ generation: JoinParameters.Generation
    ) async -> HTTPResponse {
        do throws(Problem) {
            let entrance = try entrance(for: request, generation)
            try request.checkWebSocket()
            try await entrance.check()
            return HTTPResponse(text: "success")
        } catch {
            return error.text
        }
    }

    private func decide(
        _ request: HTTPRequest, _ generation: JoinParameters.Generation
    ) async -> WebSocketDecision {
        do throws(Problem) {
            let stay = try await entrance(for: request, generation).enter()
            return .accept(abandoned: { await stay.abandon() }, session: { await stay.run(on: $0) })
        } catch {
            return .refuse(error.text)
        }
    }

    private func entrance(
        for request: HTTPRequest, _ generation: JoinParameters.Generation
    ) throws(Problem) -> Entrance {
        Entrance(
            context: context, claims: try joinClaims(of: request), parameters: try parameters(of: request, generation),
            address: request.remoteAddress, origin: request.headers["Origin"])
    }

    /// The claims of a token that lets somebody join a room. LiveKit's clients understand 401 as an invalid token.
    private func joinClaims(of request: HTTPRequest) throws(Problem) -> AccessClaims {
        let claims = try context.gate.claims(of: request)
        guard claims.video.roomJoin else {
            throw Problem(401, "permission_denied", "The token does not permit joining.")
        }
        guard claims.identity?.isEmpty == false else {
            throw Problem(400, "identity_required", "The token has no identity (`sub`).")
        }
        guard claims.video.room?.isEmpty == false else {
            throw Problem(400, "invalid_request", "The token names no room (`video.room`).")
        }
        return claims
    }

    private func parameters(
        of request: HTTPRequest, _ generation: JoinParameters.Generation
    ) throws(Problem) -> JoinParameters {
        guard generation == .single else { return JoinParameters(dual: request.query) }
        guard let parameters = JoinParameters(single: request.query["join_request"]) else {
            throw Problem(400, "invalid_request", "`join_request` is missing or not a join request.")
        }
        return parameters
    }
}

extension Problem {
    /// The refusal as text, which these clients show to people.
    var text: HTTPResponse {
        var headers = responseHeaders
        headers["Content-Type"] = "text/plain; charset=utf-8"
        return HTTPResponse(
            status: status == 409 ? 503 : status, headers: headers, body: Array((detail.isEmpty ? code : detail).utf8))
    }
}

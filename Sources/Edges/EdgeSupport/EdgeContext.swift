public import HTTPServing
public import Logging
public import Primitives
public import RoomService

/// What every edge needs: the rooms, the gate, and the parts of the configuration that clients are sent.
public struct EdgeContext: Sendable {
    /// The rooms.
    public let rooms: RoomHost
    /// Verifies access tokens.
    public let gate: TokenGate
    /// The ICE servers that clients are sent when they join.
    public let iceServers: ICEServers
    /// Name and version: "martlet/0.1.0".
    public let server: String
    /// For the edges' own lines.
    public let logger: Logger
    /// The monotonic clock.
    public let now: @Sendable () -> MonotonicTime
    /// Of the control API.
    public let calls = CallStatistics()

    /// A context of these parts.
    public init(
        rooms: RoomHost, gate: TokenGate, iceServers: ICEServers, server: String, logger: Logger,
        now: @escaping @Sendable () -> MonotonicTime
    ) {
        self.rooms = rooms
        self.gate = gate
        self.iceServers = iceServers
        self.server = server
        self.logger = logger
        self.now = now
    }
}

extension HTTPResponse {
    /// A JSON body.
    public static func json(_ value: some Encodable, status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": JSONCoding.contentType, "Cache-Control": "no-store"],
            body: JSONCoding.encode(value))
    }
}

/// A handler that may refuse by throwing a problem.
public typealias ThrowingHandler = @Sendable (HTTPRequest) async throws(Problem) -> HTTPResponse

/// Checks a request before its body is read, and may refuse it by throwing a problem; returns whether its client has sent a valid token.
public typealias ThrowingAdmission = @Sendable (HTTPRequest) throws(Problem) -> Bool

extension Router {
    private static func answering(_ admission: @escaping ThrowingAdmission) -> HTTPAdmission {
        { request in
            do throws(Problem) {
                return .admit(isKnown: try admission(request))
            } catch {
                return .refuse(error.response)
            }
        }
    }

    /// Adds a route whose refusals become problem documents. `admission` checks the token before the body is read.
    public mutating func route(
        _ method: HTTPMethod, _ pattern: String, admission: ThrowingAdmission? = nil,
        _ handler: @escaping ThrowingHandler
    ) {
        on(method, pattern, admission: admission.map(Self.answering)) { request in
            do throws(Problem) {
                return try await handler(request)
            } catch {
                return error.response
            }
        }
    }
}

extension HTTPRequest {
    /// The parameter that the route's pattern names; a missing one is a mistake in the route, and answered with a plain 404.
    public func parameter(_ name: String) throws(Problem) -> String {
        guard let value = parameters[name] else {
            throw Problem(404, "not_found", "There is no resource at this path.")
        }
        return value
    }
}

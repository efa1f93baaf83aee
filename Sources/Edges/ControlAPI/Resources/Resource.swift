import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import Primitives
import RoomService
import Rooms

/// One part of the API: its operations, and what they need.
protocol Resource: Sendable {
    var access: APIAccess { get }
    var operations: [Operation] { get }
}

/// One operation of the API.
struct Operation: Sendable {
    var method: HTTPMethod
    var pattern: String
    var handler: ThrowingHandler

    typealias Handler = @Sendable (HTTPRequest) async throws(Problem) -> HTTPResponse

    static func get(_ pattern: String, _ handler: @escaping Handler) -> Operation {
        Operation(method: .get, pattern: pattern, handler: handler)
    }
    static func post(_ pattern: String, _ handler: @escaping Handler) -> Operation {
        Operation(method: .post, pattern: pattern, handler: handler)
    }
    static func put(_ pattern: String, _ handler: @escaping Handler) -> Operation {
        Operation(method: .put, pattern: pattern, handler: handler)
    }
    static func patch(_ pattern: String, _ handler: @escaping Handler) -> Operation {
        Operation(method: .patch, pattern: pattern, handler: handler)
    }
    static func delete(_ pattern: String, _ handler: @escaping Handler) -> Operation {
        Operation(method: .delete, pattern: pattern, handler: handler)
    }
}

/// Decides whether a call may be made: its token permits it, and its API key has not made too many.
struct APIAccess: Sendable {
    let context: EdgeContext
    private let limit: CallLimit

    /// Each API key may make so many calls per second.
    init(_ context: EdgeContext, callsPerSecond: Live<Int>) {
        self.context = context
        limit = CallLimit(perSecond: callsPerSecond)
    }

    /// The claims of a request whose token has what `permits` requires in `room`; refuses it otherwise, or if its key makes more calls than
    /// it may. `budget`: the budget of its calls, if they do not count with all others of its key, or of the key's moderators.
    ///
    /// Every participant has a token of the key: calls that are not permitted must not use up those of operators, and have a separate budget.
    func claims(
        of request: HTTPRequest, room: String?, budget: String?, _ permits: (VideoGrant) -> Bool
    ) throws(Problem) -> AccessClaims {
        let claims = try context.gate.claims(of: request)
        do throws(Problem) {
            guard permits(claims.video) else { throw Problem(AccessTokenError.notPermitted) }
            try TokenGate.check(claims, areFor: room)
        } catch {
            try limitCalls(of: "without a grant: \(claims.apiKey)")
            throw error
        }
        try limitCalls(of: budget.map { "\($0) of \(claims.apiKey)" } ?? claims.callBudget)
        return claims
    }

    /// Refuses a call of an API key that makes too many.
    func limitCalls(of key: String) throws(Problem) {
        guard limit.accept(key, at: context.now()) else {
            throw Problem(
                429, "rate_limited", "The API key makes more calls than it may.", retryAfter: .seconds(1))
        }
    }
}

// MARK: - What handlers share

extension Resource {
    var context: EdgeContext { access.context }

    /// Refuses a request whose token lacks what `permits` requires, or is valid for another room.
    @discardableResult
    func authorize(
        _ request: HTTPRequest, room: String? = nil, budget: String? = nil, _ permits: (VideoGrant) -> Bool
    ) throws(Problem) -> AccessClaims {
        try access.claims(of: request, room: room, budget: budget, permits)
    }

    /// Refuses a token for one room if the call applies to all rooms.
    @discardableResult
    func authorizeServer(_ request: HTTPRequest) throws(Problem) -> AccessClaims {
        let claims = try authorize(request) { $0.roomCreate }
        guard (claims.video.room ?? "").isEmpty else { throw Problem(AccessTokenError.notPermitted) }
        return claims
    }

    /// The room in the path, if the token may moderate it.
    func moderatedRoom(_ request: HTTPRequest) throws(Problem) -> String { try moderation(request).room }

    /// The same, and who moderates.
    func moderation(_ request: HTTPRequest) throws(Problem) -> (room: String, author: String) {
        let room = try request.parameter("room")
        return (room, try authorize(request, room: room) { $0.roomAdmin }.author)
    }

    /// Refuses a name that no room can have, for calls that do not need the room to exist.
    func checkName(_ room: String) throws(Problem) {
        do throws(RoomError) { try RoomNames.check(room) } catch { throw Problem(error) }
    }

    /// Whether a grant is valid for `room`: it names this room or none.
    static func covers(_ grant: VideoGrant, _ room: String) -> Bool {
        guard let granted = grant.room, !granted.isEmpty else { return true }
        return granted == room
    }

    /// Calls the rooms and turns their refusal into an HTTP problem.
    func asking<Value: Sendable>(_ body: () async throws(RoomError) -> Value) async throws(Problem) -> Value {
        do throws(RoomError) {
            return try await body()
        } catch {
            throw Problem(error)
        }
    }

    /// `current` with the merge patch in the body applied.
    func patched<Value: Codable>(_ current: Value, by request: HTTPRequest) throws(Problem) -> Value {
        let types = [JSONCoding.mergePatchType, JSONCoding.contentType]
        guard types.contains(request.contentType) else {
            throw Problem(
                415, "unsupported_media_type", "The body must be of type application/merge-patch+json.",
                headers: ["Accept-Patch": types.joined(separator: ", ")])
        }
        do throws(JSONFault) {
            return try JSONCoding.merge(request.body, into: current)
        } catch {
            // The patch is valid by itself, but does not fit the current value, such as a member that only another one permits.
            guard (try? JSONCoding.decode(Value.self, from: request.body)) == nil else {
                var problem = Problem(409, "conflict", error.sentence)
                problem.place = error
                throw problem
            }
            throw Problem(error)
        }
    }

    /// The JSON body of a request. No body is an empty object.
    func body<Value: Decodable>(_ type: Value.Type, of request: HTTPRequest) throws(Problem) -> Value {
        guard request.body.isEmpty || request.contentType == JSONCoding.contentType else {
            throw Problem(
                415, "unsupported_media_type", "The body must be of type application/json.",
                headers: ["Accept-Post": JSONCoding.contentType])
        }
        do throws(JSONFault) {
            return try JSONCoding.decode(type, from: request.body.isEmpty ? Array("{}".utf8) : request.body)
        } catch {
            throw Problem(error)
        }
    }

    /// The room in the path with everybody in it.
    func detail(_ request: HTTPRequest) async throws(Problem) -> RoomDetail {
        let room = try moderatedRoom(request)
        return try await asking { () async throws(RoomError) in try await context.rooms.room(named: room) }
    }

    /// The media statistics of the room in the path.
    func report(_ request: HTTPRequest) async throws(Problem) -> RoomReport {
        let room = try moderatedRoom(request)
        return try await asking { () async throws(RoomError) in try await context.rooms.report(onRoom: room) }
    }

    /// The problem that a client gets if the database fails; the log has the details.
    func storageFailed(_ words: String) -> Problem {
        context.logger.error("the database failed", ["error": .text(words)])
        return Problem(500, "storage_failed", "The server's database failed; see the server's log.")
    }
}

extension AccessClaims {
    /// Who makes a call, for the event log: the API key, and the identity in the token if it has one.
    var author: String { identity.map { "\(apiKey)/\($0)" } ?? apiKey }
}

extension HTTPRequest {
    /// A whole number of the query; nil if it is absent.
    func number(_ name: String, in range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = query[name] else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Problem(
                400, "invalid_request",
                "The query's \(name) must be a number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// One of the words of a type in the query; nil if it is absent.
    func word<Word: RawRepresentable<String> & CaseIterable>(_ name: String) throws(Problem) -> Word? {
        guard let text = query[name] else { return nil }
        guard let word = Word(rawValue: text) else {
            throw Problem(400, "invalid_request", "The query's \(name) must be one of: \(Word.allWords).")
        }
        return word
    }

    /// A parameter of the query that is `true` or `false`; absent means false, and without a value true where it `mayBeBare`.
    func flag(_ name: String, mayBeBare: Bool = true) throws(Problem) -> Bool {
        switch query[name] {
        case nil, "false": false
        case "true": true
        case "" where mayBeBare: true
        default: throw Problem(400, "invalid_request", "The query's \(name) must be true or false.")
        }
    }
}

import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

/// Revoked tokens.
struct RevocationsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        [
            .get("/v1/revocations", listRevocations),
            .put("/v1/revocations/{kind}/{id}", revoke),
            .delete("/v1/revocations/{kind}/{id}", endRevocation),
        ]
    }

    func listRevocations(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let all = await context.rooms.listRevocations().map { RevocationModel($0) }
        return try ListPage(of: all, request) { "\(String(sortableMoment: $0.until))-\($0.kind)/\($0.id)" }
            .response("revocations") { $0 }
    }

    /// Revokes one token, or all that an identity has had so far.
    func revoke(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let author = try authorizeServer(request).author
        let subject = try subject(request)
        let seconds = try body(RevocationRequest.self, of: request).seconds ?? RevocationRequest.standardSeconds
        let revocation = try await asking { () async throws(RoomError) in
            try await context.rooms.revoke(subject, for: .seconds(seconds), by: author)
        }
        return .json(RevocationModel(revocation))
    }

    func endRevocation(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let author = try authorizeServer(request).author
        let subject = try subject(request)
        try await asking { () async throws(RoomError) in
            try await context.rooms.endRevocation(of: subject, by: author)
        }
        return HTTPResponse(status: 204)
    }

    private func subject(_ request: HTTPRequest) throws(Problem) -> Revocations.Subject {
        let id = try request.parameter("id")
        if let fault = TextRule.identifier.fault(in: id) { throw Problem(400, "invalid_request", "The id \(fault).") }
        switch try request.parameter("kind") {
        case "token": return .token(id)
        case "identity": return .identity(id)
        default: throw Problem(404, "not_found", "Tokens are revoked by token or by identity.")
        }
    }
}

/// The body of a revocation; if it is empty, it holds for a day.
struct RevocationRequest: Decodable {
    var seconds: Int64?

    /// A day: most tokens are not valid longer.
    static let standardSeconds: Int64 = 86_400

    private enum CodingKeys: String, CodingKey, CaseIterable { case seconds }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        seconds = try fields.decodeIfPresent(Int64.self, forKey: .seconds)
        let longest = Int64(Revocations.longest.seconds)
        guard let seconds, !(1...longest).contains(seconds) else { return }
        throw JSONFault(fields.codingPath, CodingKeys.seconds, .unexpected(wanted: "1 to \(longest)"))
    }
}

/// A revocation as JSON shows it.
struct RevocationModel: Encodable {
    /// `token` or `identity`.
    var kind: String
    var id: String
    /// For an identity: tokens must have been issued after this second since 1970.
    var issuedAfter: Int64?
    /// Milliseconds since 1970.
    var until: Int64

    init(_ revocation: Revocations.Revocation) {
        switch revocation.subject {
        case .token(let id): (kind, self.id) = ("token", id)
        case .identity(let name):
            (kind, id) = ("identity", name)
            issuedAfter = revocation.issuedAfter
        }
        until = revocation.until
    }
}

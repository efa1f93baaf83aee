import AccessTokens
import EdgeSupport
import HTTPServing
import RoomService
import Rooms

/// A room's rules.
struct PoliciesResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let policy = "/v1/rooms/{room}/policy"
        return [
            .get(policy, showPolicy),
            .put(policy, replacePolicy),
            .patch(policy, patchPolicy),
        ]
    }

    func showPolicy(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        return .policy(try await rules(of: room))
    }

    /// Replaces the room's own document with the one in the body.
    func replacePolicy(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (room, author) = try moderation(request)
        let document = try body(PolicyModel.self, of: request).document
        let rules = try await rules(of: room)
        let revision = try request.condition(rules)
        return try await edit(request, room, document, revision: revision, by: author)
    }

    /// Applies a merge patch to the room's own document. Without `If-Match`, it also applies on top of somebody else's edit in between.
    func patchPolicy(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (room, author) = try moderation(request)
        for attempt in 1... {
            let rules = try await rules(of: room)
            let isConditional = try request.condition(rules) != nil
            let document = try patched(PolicyModel(rules.document), by: request).document
            do throws(Problem) {
                return try await edit(request, room, document, revision: rules.revision, by: author)
            } catch {
                guard error.status == 412, !isConditional, attempt < 8 else { throw error }
            }
        }
        throw Problem(RoomError(.revisionMismatch))
    }

    private func rules(of room: String) async throws(Problem) -> RoomRules {
        try await asking { () async throws(RoomError) in try await context.rooms.rules(ofRoom: room) }
    }

    private func edit(
        _ request: HTTPRequest, _ room: String, _ document: PolicyDocument, revision: UInt64?,
        by author: String
    ) async throws(Problem) -> HTTPResponse {
        let removesExcess = try request.flag("removeExcess")
        guard try request.flag("dryRun") else {
            return .policy(
                try await asking { () async throws(RoomError) in
                    try await context.rooms.setPolicy(
                        document, ofRoom: room, ifRevision: revision, removesExcess: removesExcess, by: author)
                })
        }
        let (rules, impact) = try await asking { () async throws(RoomError) in
            try await context.rooms.impact(
                of: document, onRoom: room, ifRevision: revision, removesExcess: removesExcess)
        }
        return .json(PolicyImpactModel(rules.policy, impact))
    }
}

extension HTTPResponse {
    /// The rules in force, with the tag that an edit may name.
    fileprivate static func policy(_ rules: RoomRules) -> HTTPResponse {
        var response = HTTPResponse.json(PolicyModel(rules.policy))
        response.headers["ETag"] = EntityTag.field(rules.tag)
        return response
    }
}

extension RoomRules {
    /// A later room of the same name has other tags.
    fileprivate var tag: String { "\(room)-\(revision)" }
}

extension HTTPRequest {
    /// The revision that `If-Match` demands (nil: none); refused with 412 if it is not that of `rules`.
    fileprivate func condition(_ rules: RoomRules) throws(Problem) -> UInt64? {
        guard let condition = EntityTag.Condition(headers.values("If-Match")) else { return nil }
        guard condition.matches(rules.tag) else {
            throw Problem(RoomError(.revisionMismatch, "the policy is not the one that If-Match names; read it again"))
        }
        return rules.revision
    }
}

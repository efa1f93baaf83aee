import AccessTokens
import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

/// Participants of a room: shown, changed, moved and removed, and what they may receive.
struct ParticipantsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let participant = "/v1/rooms/{room}/participants/{participant}"
        return [
            .get("/v1/rooms/{room}/participants", listParticipants),
            .get(participant, showParticipant),
            .patch(participant, patchParticipant),
            .delete(participant, removeParticipant),
            .post("\(participant)/move", moveParticipant),
            .put("\(participant)/subscriptions", putSubscribeRules),
            .delete("\(participant)/subscriptions", deleteSubscribeRules),
            .get("\(participant)/stats", showParticipantStatistics),
            .get("\(participant)/decisions", listDecisions),
        ]
    }

    func listParticipants(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let profile = request.query["profile"]
        if let profile, ParticipantProfile(rawValue: profile) == nil {
            throw Problem(400, "invalid_request", "The query's profile must be full, publishOnly or viewer.")
        }
        let all = try await detail(request).participants.filter {
            profile == nil || $0.info.profile.rawValue == profile
        }
        return try ListPage(of: all, request, key: \.order)
            .response("participants") { ParticipantDetailModel($0) }
    }

    func showParticipant(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let name = try request.parameter("participant")
        let participant = try await asking { () async throws(RoomError) in
            try await context.rooms.participant(name, in: room)
        }
        return .json(ParticipantDetailModel(participant))
    }

    /// Ends a stay. `reason` is sent to the participant, `ban` keeps its identity out for so many seconds.
    func removeParticipant(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let name = try request.parameter("participant")
        let message = request.query["reason"].flatMap { $0.isEmpty ? nil : $0 }
        if let message, let fault = TextRule.label.fault(in: message) {
            throw Problem(400, "invalid_request", "The query's reason \(fault).")
        }
        let longest = Int64(Bans.longest.seconds)
        let ban = try request.query["ban"].map { text throws(Problem) in
            guard let seconds = Int64(text), (1...longest).contains(seconds) else {
                throw Problem(400, "invalid_request", "The query's ban must be 1 to \(longest) seconds.")
            }
            return TimeSpan.seconds(seconds)
        }
        return .json(
            ClosureModel(
                try await asking { () async throws(RoomError) in
                    try await context.rooms.remove(name, from: room, message: message, ban: ban)
                }))
    }

    /// Moves a participant to another room, with connections and tracks.
    func moveParticipant(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let name = try request.parameter("participant")
        let room = try request.parameter("room")
        let claims = try authorize(request, room: room) { $0.roomAdmin }
        let destination = try body(MoveRequest.self, of: request).room
        try TokenGate.check(claims, mayMoveTo: destination)
        let detail = try await asking { () async throws(RoomError) in
            try await context.rooms.move(name, from: room, to: destination)
        }
        return .json(ParticipantDetailModel(detail))
    }

    /// Changes name, metadata and permissions, by merge patch.
    func patchParticipant(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let name = try request.parameter("participant")
        let detail = try await asking { () async throws(RoomError) in
            try await context.rooms.change(name, in: room) { detail in
                Result { () throws(Problem) in
                    try patched(ParticipantEdit(detail.info), by: request).change(of: detail)
                }
            }
        }
        return .json(ParticipantDetailModel(try detail.get()))
    }

    /// Sets what the participant may receive: an ordered list of rules.
    func putSubscribeRules(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        return try await setSubscribeRules(try body([SubscribeRuleModel].self, of: request).map(\.rule), request, room)
    }

    func deleteSubscribeRules(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await setSubscribeRules(nil, request, try moderatedRoom(request))
    }

    private func setSubscribeRules(
        _ rules: [SubscribeRule]?, _ request: HTTPRequest, _ room: String
    ) async throws(Problem) -> HTTPResponse {
        let name = try request.parameter("participant")
        let detail = try await asking { () async throws(RoomError) in
            try await context.rooms.setSubscribeRules(rules, of: name, in: room)
        }
        return .json(ParticipantDetailModel(detail))
    }

    func showParticipantStatistics(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let name = try request.parameter("participant")
        let participants = try await report(request).participants
        guard let found = participants.first(where: { $0.sid == name || $0.identity == name }) else {
            throw Problem(RoomError(.participantNotFound, "There is no such participant."))
        }
        return .json(ParticipantStatisticsModel(found))
    }

    func listDecisions(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let name = try request.parameter("participant")
        let decisions = try await asking { () async throws(RoomError) in
            try await context.rooms.decisions(about: name, in: room)
        }
        return .json(DecisionsModel(decisions))
    }

}

/// The body of a move.
struct MoveRequest: Decodable {
    var room: String

    private enum CodingKeys: String, CodingKey, CaseIterable { case room }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        guard let name = try fields.text(.room, .identifier) else {
            throw JSONFault(decoder.codingPath, CodingKeys.room, .refused("must be the name of the other room"))
        }
        room = name
    }
}

extension ParticipantDetail {
    /// When it joined and its sid, as text that sorts.
    var order: String { String(sortableMoment: info.joinedAt) + "-" + info.sid }
}

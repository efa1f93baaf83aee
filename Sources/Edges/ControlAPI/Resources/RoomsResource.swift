import AccessTokens
import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

/// Rooms: to make, lock and end them, send messages to them, and ban identities from them.
struct RoomsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let room = "/v1/rooms/{room}"
        return [
            .get("/v1/rooms", listRooms),
            .post("/v1/rooms", createRoom),
            .get(room, showRoom),
            .put(room, ensureRoom),
            .patch(room, patchRoom),
            .delete(room, deleteRoom),
            .put("\(room)/lock", lockRoom),
            .delete("\(room)/lock", unlockRoom),
            .post("\(room)/messages", sendMessage),
            .get("\(room)/bans", listBans),
            .get("\(room)/bans/{identity}", showBan),
            .put("\(room)/bans/{identity}", ban),
            .delete("\(room)/bans/{identity}", endBan),
            .get("\(room)/stats", showRoomStatistics),
            .get("\(room)/history", listSamples),
        ]
    }

    /// Rooms that the token covers, by name; those of pre-call checks if the query asks for them.
    func listRooms(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomList }
        let prefix = request.query["prefix"] ?? ""
        let includesChecks = try request.flag("checks", mayBeBare: false)
        let rooms = await context.rooms.listRooms(includesChecks: includesChecks).filter {
            Self.covers(claims.video, $0.name) && (prefix.isEmpty || $0.name.hasPrefix(prefix))
        }
        return try ListPage(of: rooms, request) { $0.name }.response("rooms") { RoomModel($0) }
    }

    func createRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomCreate }
        let creation = try body(RoomCreation.self, of: request)
        try TokenGate.check(claims, areFor: creation.name)
        // A generated name is not the token's room.
        guard creation.name != nil || (claims.video.room ?? "").isEmpty else { throw Problem(.notPermitted) }
        let info = try await asking { () async throws(RoomError) in
            try await context.rooms.createRoom(
                named: creation.name, preset: creation.preset, policy: creation.policy?.document ?? PolicyDocument(),
                metadata: creation.metadata ?? "", beside: creation.beside)
        }
        var response = HTTPResponse.json(RoomModel(info), status: 201)
        response.headers["Location"] = "/v1/rooms/\(PercentCoding.encode(info.name))"
        return response
    }

    /// Makes the room in the path if there is none; an existing one is not changed, so the call may be repeated.
    func ensureRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try request.parameter("room")
        try authorize(request, room: room) { $0.roomCreate }
        let creation = try body(RoomCreation.self, of: request)
        guard creation.name == nil || creation.name == room else {
            throw Problem(400, "invalid_request", "The body's name must be that in the path, or absent.")
        }
        do throws(RoomError) {
            let info = try await context.rooms.createRoom(
                named: room, preset: creation.preset, policy: creation.policy?.document ?? PolicyDocument(),
                metadata: creation.metadata ?? "", beside: creation.beside)
            return .json(RoomModel(info), status: 201)
        } catch {
            guard error.code == .roomExists else { throw Problem(error) }
            let detail = try await asking { () async throws(RoomError) in try await context.rooms.room(named: room) }
            return .json(RoomModel(detail.info))
        }
    }

    func showRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(RoomDetailModel(try await detail(request)))
    }

    /// Changes the room's metadata, by merge patch.
    func patchRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let current = RoomChange(metadata: try await detail(request).info.metadata)
        let room = try request.parameter("room")
        let metadata = try patched(current, by: request).metadata ?? ""
        let info = try await asking { () async throws(RoomError) in
            try await context.rooms.setMetadata(metadata, ofRoom: room)
        }
        return .json(RoomModel(info))
    }

    /// Keeps newcomers out, or requires the password in the body of them.
    func lockRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let lock = try body(LockRequest.self, of: request)
        let info = try await asking { () async throws(RoomError) in
            try await context.rooms.lock(room: room, password: lock.password)
        }
        return .json(RoomModel(info))
    }

    func unlockRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        return .json(
            RoomModel(
                try await asking { () async throws(RoomError) in try await context.rooms.unlock(room: room) }))
    }

    func listBans(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        // There may be bans for a room that does not exist, so nothing else finds an impossible name.
        try await asking { () throws(RoomError) in try RoomNames.check(room) }
        return try ListPage(of: await context.rooms.bans(ofRoom: room), request) { $0.identity }
            .response("bans") { BanModel($0) }
    }

    func showBan(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let identity = try request.parameter("identity")
        return .json(
            BanModel(
                try await asking { () async throws(RoomError) in
                    try await context.rooms.ban(of: identity, in: room)
                }))
    }

    /// Bans an identity, whether it is in the room or not; if repeated, the new duration and reason apply.
    func ban(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let identity = try request.parameter("identity")
        try await asking { () throws(RoomError) in
            try RoomNames.check(room)
            try TextRule.identifier.check(identity, "the identity", tooLong: .invalidRequest)
        }
        let wanted = try body(BanRequest.self, of: request)
        return .json(
            BanModel(
                try await asking { () async throws(RoomError) in
                    try await context.rooms.ban(
                        identity, from: room, for: .seconds(wanted.seconds), reason: wanted.reason)
                }))
    }

    func endBan(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let identity = try request.parameter("identity")
        try await asking { () async throws(RoomError) in try await context.rooms.endBan(of: identity, in: room) }
        return HTTPResponse(status: 204)
    }

    func deleteRoom(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try request.parameter("room")
        try authorize(request, room: room) { $0.roomCreate }
        return .json(
            ClosureModel(
                try await asking { () async throws(RoomError) in try await context.rooms.deleteRoom(named: room) }))
    }

    /// The room's samples of the last hour.
    func listSamples(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let samples = try await asking { () async throws(RoomError) in try await context.rooms.history(ofRoom: room) }
        return .json(["samples": samples.map(RoomSampleModel.init)])
    }

    func showRoomStatistics(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(RoomStatisticsModel(try await report(request)))
    }

    func sendMessage(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let message = try body(MessageRequest.self, of: request).message
        try await asking { () async throws(RoomError) in try await context.rooms.send(message, toRoom: room) }
        return HTTPResponse(status: 204)
    }
}

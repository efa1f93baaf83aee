import AccessTokens
import Primitives
public import Rooms

// What a join is refused for.

extension RoomService {
    /// What keeps a join out whether or not there is its room already.
    func checkServer(_ claims: AccessClaims, room name: String) throws(RoomError) {
        try rules.check(claims, room: name, now: media.now())
        // Whoever connects anew takes the place of themselves.
        guard rooms[name]?.room.replaces(identity: claims.identity) != true else { return }
        try capacity.check(present: rooms.sessionCount, configuration)
    }

    /// Refuses one room more; one that a join makes only where joins may make any.
    func checkNewRoom(named name: String, forJoin: Bool) throws(RoomError) {
        guard configuration.autoCreateRooms || !forJoin else { throw RoomError(.roomNotFound, "there is no such room") }
        guard drain == nil, !isEnding else { throw RoomError(.draining, "the server is about to end") }
        guard rooms.count < configuration.maxRooms else {
            throw RoomError(.limitExceeded, "room limit of the server reached")
        }
        try RoomNames.check(name)
    }

    /// Throws what a join would be refused for now; nobody joins or is counted, and no room is made. A browser cannot read the status with
    /// which a socket was refused, so that its client asks again for the reason. A password is not checked.
    public func checkJoin(_ request: JoinRequest) throws(RoomError) {
        let name = roomName(of: request)
        // Whoever was moved without connections comes to a place that is kept.
        if let found = rooms.awaited(request.claims, in: name) {
            return try checkReturn(request.claims, from: name, to: found.hosted)
        }
        guard !isEnding else { throw Self.isShuttingDown }
        try checkServer(request.claims, room: name)
        let worker: WorkerIndex
        if let hosted = rooms[name] {
            if lockedRoom(request) != nil { _ = try Self.password(of: request, for: hosted) }
            try hosted.room.checkJoin(request, at: media.now())
            if hosted.room.hasMember(identity: request.claims.identity) { return }
            worker = hosted.worker
        } else {
            try checkNewRoom(named: name, forJoin: true)
            worker = try capacity.worker(in: media, forJoin: false)
        }
        try capacity.foreseeLoad(of: worker)
    }

    /// The room that a join names, or the default one.
    func roomName(of request: JoinRequest) -> String {
        request.claims.video.room.flatMap { $0.isEmpty ? nil : $0 } ?? request.room ?? configuration.defaultRoom
    }

    static let isShuttingDown = RoomError(.draining, "the server is shutting down")
}

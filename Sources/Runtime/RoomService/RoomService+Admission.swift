import AccessTokens
import Primitives
import Rooms

extension RoomService {
    /// The room that a join goes to, made where that is allowed.
    func admit(_ request: JoinRequest) throws(RoomError) -> (HostedRoom, RoomTurn) {
        do throws(RoomError) {
            guard !isDraining else { throw RoomError(.draining, "the server is going away") }
            guard request.claims.video.roomJoin else {
                throw RoomError(.permissionDenied, "the token does not permit joining")
            }
            guard nameBySession.count < configuration.maxParticipants else {
                throw RoomError(.overloaded, "the server is full", retryAfter: .seconds(10))
            }
            guard joinBudget.take(at: media.now()) else {
                throw RoomError(.rateLimited, "too many joins", retryAfter: .seconds(1))
            }
            var turn = newTurn()
            let name = RoomNames.resolve(
                granted: request.claims.video.room, asked: request.room, standard: configuration.defaultRoom,
                turn: &turn)
            if let hosted = rooms[name] { return (hosted, turn) }
            guard configuration.autoCreateRooms else { throw RoomError(.roomNotFound, "there is no such room") }
            return (
                try makeRoom(named: name, policy: configuration.defaultPolicy, metadata: "", turn: &turn), turn
            )
        } catch {
            throw counted(error)
        }
    }

    /// A joining step. A room that was made for a join that was then refused goes away again.
    func enter<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn,
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> Reply
    ) async throws(RoomError) -> Reply {
        let isNew = !turn.effects.isEmpty
        let reply = try await step(hosted, turn) { (room, turn) throws(RoomError) -> Reply in
            do throws(RoomError) {
                return try body(&room, &turn)
            } catch {
                if isNew { room.close(reason: .roomDeleted, turn: &turn) }
                throw error
            }
        }
        totals.joins += 1
        return reply
    }
}

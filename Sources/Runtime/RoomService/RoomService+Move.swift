import MediaControl
import MediaWorkers
import Primitives
public import Rooms

extension RoomService {
    /// Moves a participant, named by sid or identity, to another room, with its connections and what it publishes: nothing is negotiated for that. A room that
    /// is not there is made where a join may make one.
    ///
    /// Throws what a join would (but for lock, password and waiting room, which are the operator's to pass), `different_worker` where the other room is on
    /// another media worker, and changes nothing then.
    public func move(
        _ participant: String, from name: String, to destination: String
    ) async throws(RoomError) -> ParticipantDetail {
        let source = try hosted(named: name)
        guard !media.hangs(source.worker) else { throw counted(.workerHangs) }
        var turn = newTurn()
        let target: HostedRoom, moving: MovingMember
        var commands: [MediaCommand]
        do throws(RoomError) {
            guard name != destination else {
                throw RoomError(.invalidRequest, "the participant is in this room already")
            }
            target = try roomToMoveTo(destination, beside: source, turn: &turn)
            do throws(RoomError) {
                (moving, commands) = try move(participant, from: source, to: target, turn)
            } catch {
                // A room that was made for this goes away again.
                if !turn.effects.isEmpty {
                    target.room.close(reason: .roomDeleted, turn: &turn)
                    try? await media.apply(carryOut(turn.effects, target), on: target.worker)
                }
                throw error
            }
        } catch {
            throw counted(error)
        }
        if source.room.hasNews || target.room.hasNews { alarm.yield() }
        do throws(WorkerHangs) {
            try await media.apply(commands, on: source.worker)
        } catch {
            throw counted(.workerHangs)
        }
        return try self.participant(moving.info.sid, in: destination)
    }

    private func roomToMoveTo(
        _ name: String, beside source: HostedRoom, turn: inout RoomTurn
    ) throws(RoomError) -> HostedRoom {
        if let hosted = rooms[name], !hosted.isCheck {
            guard hosted.worker == source.worker else {
                throw RoomError(
                    .differentWorker,
                    "the rooms are on different media workers: the participant must join the other room itself; a room that is made beside this one shares its worker"
                )
            }
            return hosted
        }
        guard configuration.autoCreateRooms else { throw RoomError(.roomNotFound, "there is no room of that name") }
        return try makeRoom(named: name, preset: source.preset, beside: source, turn: &turn)
    }

    /// Both rooms' steps, on copies, so that a refusal changes neither.
    private func move(
        _ participant: String, from source: HostedRoom, to target: HostedRoom, _ turn: RoomTurn
    ) throws(RoomError) -> (MovingMember, [MediaCommand]) {
        var leaving = newTurn(), entering = turn
        var (former, next) = (source.room, target.room)
        let moving = try former.moveOut(participant, turn: &leaving)
        try bans.check(moving.info.identity, room: next.name, now: media.now())
        try next.moveIn(moving, turn: &entering)
        (source.room, target.room) = (former, next)
        nameBySession[moving.session] = next.name
        moved.add(moving.numbers, to: next.id)
        for capture in captures where capture.info.participant == moving.info.sid { capture.roomChanged(to: next.name) }
        let carried = source.stays.carried(by: moving.info.sid)
        // No await before this: events of two steps must not overtake each other.
        let commands = carryOut(leaving.effects, source) + carryOut(entering.effects, target)
        target.stays.goOn(moving.info.sid, with: carried)
        return (moving, commands)
    }
}

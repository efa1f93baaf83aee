import MediaControl
import MediaWorkers
import Primitives
import Rooms

extension RoomService {
    /// One step of a room: decide, deliver events, then let the worker catch up.
    func step<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn? = nil,
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> Reply
    ) async throws(RoomError) -> Reply {
        var turn = turn ?? newTurn()
        // Refused before anything has changed; a room that was just made is closed by whoever made it.
        guard !turn.effects.isEmpty || !media.hangs(hosted.worker) else { throw counted(.workerHangs) }
        let outcome: Result<Reply, RoomError>
        do throws(RoomError) {
            outcome = .success(try body(&hosted.room, &turn))
        } catch {
            outcome = .failure(counted(error))
        }
        // No await before this: events of two steps must not overtake each other.
        let commands = carryOut(turn.effects, hosted)
        if hosted.room.hasNews { alarm.yield() }
        do throws(WorkerHangs) {
            if !commands.isEmpty { try await media.apply(commands, on: hosted.worker) }
        } catch {
            await keepRules()
            throw counted(.workerHangs)
        }
        await keepRules()
        return try outcome.get()
    }

    /// A step that cannot be refused. A worker that hangs carries it out when it comes back.
    func step(_ hosted: HostedRoom, _ body: (inout Room, inout RoomTurn) -> Void) async {
        var turn = newTurn()
        body(&hosted.room, &turn)
        let commands = carryOut(turn.effects, hosted)
        if hosted.room.hasNews { alarm.yield() }
        if !commands.isEmpty { try? await media.apply(commands, on: hosted.worker) }
        await keepRules()
    }

    /// Writes down the rules that steps have made.
    private func keepRules() async {
        guard !unkept.isEmpty else { return }
        let rules = unkept
        unkept = []
        for rule in rules { await keep(rule) }
    }

    /// Delivers what is for sessions and the log; returns what is for the worker.
    func carryOut(_ effects: [RoomEffect], _ hosted: HostedRoom) -> [MediaCommand] {
        reservedConnections += hosted.room.reservedConnections - hosted.reservedConnections
        hosted.reservedConnections = hosted.room.reservedConnections
        var commands: [MediaCommand] = []
        for effect in effects {
            switch effect {
            case .media(let command): commands.append(command)
            case .send(let message, let receivers, let source):
                commands += self.commands(for: message, to: receivers, from: source)
            case .notify(let session, let event): deliver(event, to: session, hosted)
            case .sessionEnded(let session, let reason): forget(session, reason)
            case .recording(let effect):
                recorder?.apply(effect, room: hosted.room.name, roomSID: hosted.room.sid)
            case .playback(let effect): player?.apply(effect)
            case .log(let event):
                note(event, in: hosted.room.name)
                record(event, in: hosted)
            case .joinStep(let participant, let step):
                guard let after = hosted.stays.reach(step, by: participant, at: media.wallClockMilliseconds()) else {
                    break
                }
                totals.joinSteps[step, default: ConnectTimes()].add(after)
            case .freezesReported(let participant, let new):
                hosted.stays.add(new, of: participant)
                totals.freezes = totals.freezes + new
            case .roomEnded:
                rooms[hosted.room.name] = nil
                nameByID[hosted.room.id] = nil
            }
        }
        return commands
    }

    /// A reader that does not keep up loses its stream and may resume, as after a dropped socket.
    private func deliver(_ event: SequencedEvent, to session: SessionID, _ hosted: HostedRoom) {
        totals.eventsDelivered += 1
        if case .offer = event.event { totals.offersMade += 1 }
        guard mailboxes[session]?.deliver(event) == false else { return }
        totals.slowReaders += 1
        var turn = newTurn()
        hosted.room.detach(session, turn: &turn)
    }

    private func forget(_ session: SessionID, _ reason: LeaveReason) {
        totals.departures[reason.rawValue, default: 0] += 1
        mailboxes[session]?.close()
        mailboxes[session] = nil
        nameBySession[session] = nil
    }

    private func note(_ event: RoomLogEvent, in room: String) {
        switch event {
        case .connectionChanged(_, _, .closed, let reason):
            totals.connectionsEnded[reason ?? "unknown", default: 0] += 1
        // By an operator or by a moderator in the room.
        case .participantLeft(let info, .removed, _): refuseOlderTokens(room: room, identity: info.identity)
        default: break
        }
    }
}

extension RoomError {
    /// The thread that carries a room's media does not answer.
    static let workerHangs = RoomError(
        .mediaUnavailable, "the media worker of this room does not answer", retryAfter: .seconds(5))
}

public import AccessTokens
import Cryptography
import MediaControl
import MediaWorkers
public import Primitives
public import Rooms

// Operations on rooms and participants by operators, and by the API on behalf of clients.

extension RoomHost {
    /// Every room by name; those of pre-call checks only if `includesChecks`.
    public func listRooms(includesChecks: Bool = false) -> [RoomInfo] {
        rooms.all.filter { includesChecks || !$0.isCheck }.map(\.room.info).sorted { $0.name < $1.name }
    }

    /// One room with its participants.
    public func room(named name: String) throws(RoomError) -> RoomDetail {
        let room = try hosted(named: name).room
        return RoomDetail(
            info: room.info, policy: room.policy, participants: room.sessions.compactMap { detail(of: $0, in: room) })
    }

    /// One participant by sid or identity.
    public func participant(_ participant: String, in name: String) throws(RoomError) -> ParticipantDetail {
        let room = try hosted(named: name).room
        guard let session = room.find(participant), let detail = detail(of: session, in: room) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        return detail
    }

    private func detail(of session: SessionID, in room: Room) -> ParticipantDetail? {
        guard let info = room.participant(session), let granted = room.granted(to: session),
            let bandwidth = room.bandwidth(of: session)
        else { return nil }
        return ParticipantDetail(
            info: info, granted: granted,
            connections: room.connections(of: session).map { ConnectionInfo(id: $0.id, state: $0.state) },
            subscriptions: room.subscriptions(of: session), bandwidth: bandwidth,
            subscribeRules: room.subscribeRules(of: session))
    }

    /// Creates a room; `room_exists` if there is one with that name, `preset_not_found` if there is no such preset, `room_not_found` if there is no room
    /// `beside` whose worker it is to share. nil name: a generated one.
    public func createRoom(
        named name: String?, preset: String? = nil, policy document: PolicyDocument = PolicyDocument(),
        metadata: String = "", beside neighbour: String? = nil
    ) async throws(RoomError) -> RoomInfo {
        var turn = newTurn()
        let name = name ?? RoomNames.generated(turn: &turn)
        let hosted: HostedRoom
        do throws(RoomError) {
            guard rooms[name] == nil else { throw RoomError(.roomExists, "a room with this name exists already") }
            try TextRule.metadata.check(metadata, "the metadata")
            hosted = try makeRoom(
                named: name, preset: preset, document: document, metadata: metadata,
                beside: try neighbour.map { name throws(RoomError) in try self.hosted(named: name) }, turn: &turn)
            rules.reopen(room: name)
        } catch {
            throw counted(error)
        }
        return try await open(hosted, turn) { $0.info }
    }

    /// The first step of a room that is created without a join. If its worker does not respond, the room is removed: the next one goes to another worker.
    private func open<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn, _ reply: (Room) -> Reply
    ) async throws(RoomError) -> Reply {
        do throws(RoomError) {
            return try await step(hosted, turn) { room, _ in reply(room) }
        } catch {
            if error.code == .mediaUnavailable { await closeUnused(hosted) }
            throw error
        }
    }

    /// Closes a room whose worker has never responded, once nobody waits in it any more: its creator, and all who tried to join meanwhile, call this.
    func closeUnused(_ hosted: HostedRoom) async {
        guard rooms[hosted.room.name] === hosted, hosted.room.isEmpty, !hosted.hasWorked else { return }
        await step(hosted) { $0.close(reason: .roomDeleted, turn: &$1) }
    }

    /// Ends a room and everybody's stay in it. Older tokens cannot create it again.
    @discardableResult
    public func deleteRoom(named name: String) async throws(RoomError) -> TokenClosure {
        let hosted = try hosted(named: name)
        let closure = closure
        refuseOlderTokens(room: name, identity: nil)
        await step(hosted) { $0.close(reason: .roomDeleted, turn: &$1) }
        return closure
    }

    /// Ends a participant's stay, named by sid or identity. Its older tokens cannot join again. If it is banned for `ban`, all stays of its
    /// identity end, and no token can join. It is notified with `message`.
    @discardableResult
    public func remove(
        _ participant: String, from name: String, message: String? = nil, ban: TimeSpan? = nil
    ) async throws(RoomError) -> TokenClosure {
        let closure = closure
        let hosted = try hosted(named: name)
        if let ban {
            let identity = try self.participant(participant, in: name).info.identity
            _ = try await self.ban(identity, from: name, for: ban, reason: message ?? "")
        } else {
            try await step(hosted) { (room, turn) throws(RoomError) in
                try room.removeParticipant(participant, message: message, turn: &turn)
            }
        }
        return closure
    }

    /// Mutes a track by sid, of the participant with this `identity` (nil: of any participant); only the publisher can unmute, so that is refused.
    public func setMuted(
        _ muted: Bool, track: String, of identity: String? = nil, in name: String
    ) async throws(RoomError) -> TrackInfo {
        guard muted else { throw counted(RoomError(.permissionDenied, "only the publisher can unmute")) }
        return try await step(try hosted(named: name)) { (room, turn) throws(RoomError) -> TrackInfo in
            try room.muteByOther(track, of: identity, by: nil, turn: &turn)
        }
    }

    /// Asks the publisher of a muted track to unmute it.
    public func requestUnmute(track: String, in name: String) async throws(RoomError) -> TrackInfo {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) -> TrackInfo in
            try room.requestUnmute(track, by: nil, turn: &turn)
        }
    }

    /// The guests that wait to be admitted to a room, in order of arrival.
    public func guests(ofRoom name: String) throws(RoomError) -> [WaitingGuest] {
        try hosted(named: name).room.guests
    }

    /// Admits a waiting guest, or refuses it.
    public func decide(onGuest identity: String, in name: String, letsIn: Bool) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.decide(onGuest: identity, letsIn: letsIn, by: nil, turn: &turn)
        }
    }

    /// Creates the room of a pre-call check and returns its name. `rate_limited` while there are as many as the configuration allows, or as many as it allows
    /// one client, which is identified by the claims of its token and its address.
    public func openCheck(_ claims: AccessClaims, from address: String) async throws(RoomError) -> String {
        let checker = ClientMark(claims, address: address)
        var turn = newTurn()
        let hosted: HostedRoom
        do throws(RoomError) {
            guard configuration.maxChecks > 0 else {
                throw RoomError(
                    .permissionDenied, "this server makes no pre-call checks (its setting rooms.max_checks is 0)")
            }
            let most = PreCallCheck.maximumPerClient(of: configuration.maxChecks)
            guard rooms.all.count(where: { $0.checker == checker }) < most else {
                throw RoomError(
                    .rateLimited, "as many pre-call checks of this client are in progress as one may have",
                    retryAfter: .seconds(10))
            }
            guard rooms.all.count(where: \.isCheck) < configuration.maxChecks else {
                throw RoomError(
                    .rateLimited, "as many pre-call checks are in progress as this server allows",
                    retryAfter: .seconds(10))
            }
            hosted = try makeRoom(
                named: RoomNames.generated("check-", turn: &turn), preset: nil, checker: checker, turn: &turn)
        } catch {
            throw counted(error)
        }
        return try await open(hosted, turn) { $0.name }
    }
}

// MARK: - Locks

extension RoomHost {
    /// Locks a room for newcomers: without a password for all but moderators, with one for everybody who does not know it. Members stay.
    ///
    /// `session` is the member that does so (nil: an operator); `permission_denied` if the room's policy does not permit it.
    @discardableResult
    public func lock(
        room name: String, password: String?, by session: SessionID? = nil
    ) async throws(RoomError) -> RoomInfo {
        let hosted = try hosted(named: name)
        guard let password else { return try await setLock(.closed, nil, hosted, session) }
        do throws(RoomError) {
            // Before the work, so that a client that may not lock cannot make the server hash.
            try hosted.room.checkLockRight(of: session)
            guard !password.isEmpty, password.unicodeScalars.count <= PasswordDoor.maximumLength else {
                throw RoomError(.invalidRequest, "a password must have 1 to \(PasswordDoor.maximumLength) characters")
            }
        } catch {
            throw counted(error)
        }
        guard let hash = await passwords.hash(password) else { throw counted(.tooManyPasswords) }
        guard rooms[name] === hosted else { throw counted(RoomError(.roomNotFound, "there is no such room")) }
        return try await setLock(.password, hash, hosted, session)
    }

    /// Unlocks the room for everybody with a token.
    @discardableResult
    public func unlock(room name: String, by session: SessionID? = nil) async throws(RoomError) -> RoomInfo {
        try await setLock(.open, nil, try hosted(named: name), session)
    }

    private func setLock(
        _ lock: RoomLock, _ hash: PasswordHash?, _ hosted: HostedRoom, _ session: SessionID?
    ) async throws(RoomError) -> RoomInfo {
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.setLock(lock, by: session, turn: &turn)
            hosted.lockChanged(hash)
            return room.info
        }
    }
}

// MARK: - Moves

extension RoomHost {
    /// Moves a participant, named by sid or identity, to another room, with its connections and its tracks, without negotiation. A room that
    /// does not exist is created if joins may create rooms; a move to the same room changes nothing. If the other room is on another media worker, the
    /// participant's client connects and publishes anew, in the same session, or continues it by joining the other room.
    ///
    /// Throws the errors of a join (except for lock, password and waiting room, which the operator overrides), and `different_worker` if the other room is on
    /// another media worker and the client could not connect anew; nothing changes then.
    public func move(
        _ participant: String, from name: String, to destination: String
    ) async throws(RoomError) -> ParticipantDetail {
        let source = try hosted(named: name)
        guard name != destination else { return try self.participant(participant, in: name) }
        guard !media.hangs(source.worker) else { throw counted(.workerHangs) }
        var turn = newTurn()
        let target: HostedRoom, moving: MovingMember
        let work: [(worker: WorkerIndex, commands: [MediaCommand])]
        do throws(RoomError) {
            target = try roomToMoveTo(destination, beside: source, turn: &turn)
            do throws(RoomError) {
                (moving, work) = try move(participant, from: source, to: target, turn)
            } catch {
                // A room that was created for this is removed.
                if !turn.effects.isEmpty {
                    target.room.close(reason: .roomDeleted, turn: &turn)
                    try? await media.apply(carryOut(turn.effects, target), on: target.worker)
                }
                throw error
            }
        } catch {
            throw counted(error)
        }
        if source.room.hasNews || target.room.hasNews { alarm.raise() }
        // To both before either is awaited: what the next step sends to the other worker must come after this.
        for (worker, commands) in work { media.post(commands, on: worker) }
        var areAnswering = true
        for (worker, _) in work {
            // A worker that hangs carries out its commands when it recovers.
            do throws(WorkerHangs) { try await media.apply([], on: worker) } catch { areAnswering = false }
        }
        await endCaptures(ofMoved: moving.info.sid)
        guard areAnswering else { throw counted(.workerHangs) }
        return try self.participant(moving.info.sid, in: destination)
    }

    private func roomToMoveTo(
        _ name: String, beside source: HostedRoom, turn: inout RoomTurn
    ) throws(RoomError) -> HostedRoom {
        if let hosted = rooms[name] {
            guard !hosted.isCheck else {
                throw RoomError(.invalidRequest, "the room of that name is of a pre-call check")
            }
            guard !media.hangs(hosted.worker) else { throw .workerHangs }
            return hosted
        }
        guard configuration.autoCreateRooms else { throw RoomError(.roomNotFound, "there is no room of that name") }
        return try makeRoom(named: name, preset: source.preset, beside: source, turn: &turn)
    }

    /// Both rooms' steps, on copies, so that a refusal changes neither.
    private func move(
        _ participant: String, from source: HostedRoom, to target: HostedRoom, _ turn: RoomTurn
    ) throws(RoomError) -> (MovingMember, [(worker: WorkerIndex, commands: [MediaCommand])]) {
        let staysOnWorker = source.worker == target.worker
        var leaving = newTurn(), entering = turn
        var (former, next) = (source.room, target.room)
        let moving = try former.moveOut(participant, toOtherWorker: !staysOnWorker, turn: &leaving)
        try rules.checkBan(of: moving.info.identity, room: next.name, now: media.now())
        try next.moveIn(moving, turn: &entering)
        // On another worker it is one more participant, and its media load is that of a newcomer. Last, because a refusal is counted.
        if !staysOnWorker {
            try capacity.checkLoad(of: target.worker)
            capacity.admitted(to: target.worker)
        }
        (source.room, target.room) = (former, next)
        rooms.move(moving, to: target)
        target.noteMoved(moving.numbers)
        captures.participantMoved(moving.info.sid, at: media.now())
        let carried = source.stays.carried(by: moving.info.sid)
        let lastSample = source.stays.lastSample(of: moving.info.sid)
        // No await before this: events of two steps must not overtake each other.
        let left = carryOut(leaving.effects, source), entered = carryOut(entering.effects, target)
        if !moving.losesConnections { target.stays.goOn(moving.info.sid, with: carried, since: lastSample) }
        return (
            moving,
            staysOnWorker ? [(source.worker, left + entered)] : [(source.worker, left), (target.worker, entered)]
        )
    }
}

// MARK: - Playbacks

// The player opens a file, the room admits it as a participant, the player sends it.
extension RoomHost {
    /// Plays a file that the player has opened into an existing room. `request` contains its formats.
    public func startPlayback(
        _ request: PlaybackRequest, of file: OpenedFile, in name: String
    ) async throws(RoomError) -> PlaybackInfo {
        let hosted = try hosted(named: name)
        guard let player else {
            throw counted(RoomError(.playbackDisabled, "the server plays no files"))
        }
        do throws(RoomError) {
            guard drain == nil, !isEnding else { throw RoomError(.draining, "the server is about to end") }
            try rules.checkBan(of: request.identity, room: name, now: media.now())
            try capacity.check(present: rooms.sessionCount, configuration)
        } catch {
            throw counted(error)
        }
        var admitted: SessionID?
        let info: PlaybackInfo
        do throws(RoomError) {
            info = try await step(hosted) { (room, turn) throws(RoomError) -> PlaybackInfo in
                let (session, info) = try room.startPlayback(request, turn: &turn)
                self.rooms.place(session, in: room.name)
                admitted = session
                return info
            }
        } catch {
            // Its worker has begun to hang: the file would never be sent.
            if let admitted { await leave(admitted) }
            throw error
        }
        // Somebody may have removed it while its worker got the commands.
        guard hosted.room.hasPlayback(info.sid) else {
            throw counted(RoomError(.playbackNotFound, "the playback was ended before it began"))
        }
        // Its worker has the tracks now; earlier packets would belong to no track.
        player.begin(info, of: file, room: name, roomSID: hosted.room.sid, worker: hosted.worker)
        return info
    }

    /// Ends a playback.
    public func endPlayback(
        _ sid: String, _ end: PlaybackEnd, room name: String
    ) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.endPlayback(sid, end, turn: &turn)
        }
    }

    /// The player reached a file's end: not refused if the worker hangs, because this is not reported again. A room that ended meanwhile has no such playback.
    public func playbackHasEnded(_ sid: String, _ end: PlaybackEnd, room name: String) async {
        guard let hosted = rooms[name], hosted.room.hasPlayback(sid) else { return }
        await step(hosted) { room, turn in _ = try? room.endPlayback(sid, end, turn: &turn) }
    }
}

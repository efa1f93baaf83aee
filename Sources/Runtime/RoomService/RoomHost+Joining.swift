public import AccessTokens
import Cryptography
import Primitives
public import Rooms

// Joining and resuming.

extension RoomHost {
    /// Joins a room, creating it if that is allowed.
    public func join(_ request: JoinRequest) async throws(RoomError) -> JoinedSession {
        do throws(RoomError) {
            return try await joinSignalled(request)
        } catch {
            recordRefusal(error, of: request)
            throw error
        }
    }

    private func joinSignalled(_ request: JoinRequest) async throws(RoomError) -> JoinedSession {
        if let (hosted, session) = try awaited(request) { return try await rejoin(session, hosted, request) }
        try await checkLock(request)
        let (hosted, turn) = try admit(request)
        let joined = try await enter(hosted, turn) { (room, turn) throws(RoomError) -> (SessionID, JoinedSession) in
            let session = try Self.join(&room, request, &turn) { (room, turn) throws(RoomError) in
                try room.join(request, isSignalled: true, turn: &turn)
            }
            let snapshot = try room.snapshot(session)
            let opened = self.mailboxes.open(
                session, maxQueued: self.configuration.queuedEvents, maxPast: self.configuration.maxReplayEvents)
            self.rooms.place(session, in: room.name)
            room.settle(session, turn: &turn)
            let joined = JoinedSession(
                session: session, snapshot: snapshot, events: opened.events, attachment: opened.attachment)
            return (session, joined)
        }
        note(request.origin, of: joined.snapshot.participant.sid, in: hosted)
        return joined
    }

    /// The session that a join continues, if it was moved without its connections.
    private func awaited(_ request: JoinRequest) throws(RoomError) -> (HostedRoom, SessionID)? {
        guard let name = request.claims.video.room, let found = rooms.awaited(request.claims, in: name) else {
            return nil
        }
        do throws(RoomError) {
            try checkReturn(request.claims, from: name, to: found.hosted)
        } catch {
            throw counted(error)
        }
        return found
    }

    /// Refuses a client that may not continue a session that is awaited in `hosted`, with a token for the room `name`.
    func checkReturn(_ claims: AccessClaims, from name: String, to hosted: HostedRoom) throws(RoomError) {
        if hosted.room.name == name { return try rules.check(claims, room: name, now: media.now()) }
        try rules.checkReturn(claims, room: hosted.room.name, now: media.now())
    }

    private func rejoin(
        _ session: SessionID, _ hosted: HostedRoom, _ request: JoinRequest
    ) async throws(RoomError) -> JoinedSession {
        var attachment: UInt64?
        let joined: JoinedSession
        do throws(RoomError) {
            joined = try await step(hosted) { (room, turn) throws(RoomError) -> JoinedSession in
                try room.rejoin(session, request, turn: &turn)
                let snapshot = try room.snapshot(session)
                guard let opened = self.mailboxes.reopen(session, after: snapshot.sequence) else {
                    throw RoomError(.sessionNotFound, "there is no such session")
                }
                attachment = opened.attachment
                room.settle(session, turn: &turn)
                return JoinedSession(
                    session: session, snapshot: snapshot, events: opened.events, attachment: opened.attachment,
                    start: .rejoined)
            }
        } catch {
            // If the worker does not respond, the client is refused, and joins again.
            if let attachment { await abandon(session, attachment: attachment, start: .rejoined) }
            throw error
        }
        totals.joins += 1
        note(request.origin, of: joined.snapshot.participant.sid, in: hosted)
        return joined
    }

    private func note(_ origin: JoinOrigin?, of participant: String, in hosted: HostedRoom) {
        hosted.stays.grantJoin(origin, of: participant)
        if let verification = origin?.verification { totals.tokenVerification.add(verification.seconds) }
    }

    /// A join; a guest that nobody has admitted yet is listed as waiting.
    private static func join<Reply>(
        _ room: inout Room, _ request: JoinRequest, _ turn: inout RoomTurn,
        _ join: (inout Room, inout RoomTurn) throws(RoomError) -> Reply
    ) throws(RoomError) -> Reply {
        do throws(RoomError) {
            return try join(&room, &turn)
        } catch {
            if error.code == .approvalRequired { room.noteGuest(request, turn: &turn) }
            throw error
        }
    }

    /// Joins and publishes in one step (WHIP). The only connection is called "main".
    public func joinPublisher(_ request: JoinRequest, offer: String) async throws(RoomError) -> ConnectedSession {
        var request = request
        request.profile = .publishOnly
        return try await connect(request, offer: offer, follow: nil)
    }

    /// Joins and plays in one step (WHEP). The only connection is called "main".
    public func joinViewer(
        _ request: JoinRequest, offer: String, follow: FollowTarget
    ) async throws(RoomError) -> ConnectedSession {
        var request = request
        request.profile = .viewer
        return try await connect(request, offer: offer, follow: follow)
    }

    private func connect(
        _ request: JoinRequest, offer: String, follow: FollowTarget?
    ) async throws(RoomError) -> ConnectedSession {
        do throws(RoomError) {
            return try await joinConnected(request, offer: offer, follow: follow)
        } catch {
            recordRefusal(error, of: request)
            throw error
        }
    }

    private func joinConnected(
        _ request: JoinRequest, offer: String, follow: FollowTarget?
    ) async throws(RoomError) -> ConnectedSession {
        try await checkLock(request)
        let (hosted, turn) = try admit(request)
        let connected = try await enter(hosted, turn) {
            (room, turn) throws(RoomError) -> (SessionID, ConnectedSession) in
            let (session, answer) = try Self.join(&room, request, &turn) { (room, turn) throws(RoomError) in
                try room.join(request, offer: offer, connection: Self.onlyConnection, follow: follow, turn: &turn)
            }
            guard let participant = room.participant(session) else { throw RoomError(.sessionNotFound) }
            self.rooms.place(session, in: room.name)
            let connected = ConnectedSession(
                session: session, room: room.name, participant: participant, answer: answer)
            return (session, connected)
        }
        totals.offersAnswered += 1
        note(request.origin, of: connected.participant.sid, in: hosted)
        return connected
    }

    /// The connection of WHIP and WHEP sessions.
    static let onlyConnection = "main"

    /// The room that a join goes to, created if that is allowed.
    func admit(_ request: JoinRequest) throws(RoomError) -> (HostedRoom, RoomTurn) {
        do throws(RoomError) {
            guard !isEnding else { throw Self.isShuttingDown }
            guard request.claims.video.roomJoin else {
                throw RoomError(.permissionDenied, "the token does not permit joining")
            }
            var turn = newTurn()
            let name = try RoomNames.resolve(
                granted: request.claims.video.room, asked: request.room,
                defaultRoom: configuration.defaultRoom, turn: &turn)
            try checkServer(request.claims, room: name)
            // A guest that repeats its request every two seconds does not join each time.
            if rooms[name]?.room.keepsWaiting(request) != true {
                try capacity.admitJoin(request, configuration, at: media.now())
            }
            if let hosted = rooms[name] {
                if addsLoad(request, to: hosted) { try capacity.checkLoad(of: hosted.worker) }
                return (hosted, turn)
            }
            let preset = request.claims.video.preset
            return (try makeRoom(named: name, preset: preset, forJoin: true, turn: &turn), turn)
        } catch {
            throw counted(error)
        }
    }

    /// Logs that a client could not join an existing room.
    func recordRefusal(_ error: RoomError, of request: JoinRequest) {
        // Logged once, as a waiting guest.
        guard error.code != .approvalRequired else { return }
        journal.trace(
            error.code, of: request, defaultRoom: configuration.defaultRoom, at: media.wallClockMilliseconds())
        guard let hosted = rooms[roomName(of: request)], hosted.mayWriteRefusal(error.code, at: media.now()) else {
            return
        }
        record(.joinRefused(identity: request.claims.identity, code: error.code), in: hosted)
    }

    /// A step that joins. A room that was created for a join that was then refused is removed, and so is a session whose worker does not respond.
    func enter<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn,
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> (session: SessionID, reply: Reply)
    ) async throws(RoomError) -> Reply {
        let isNew = !turn.effects.isEmpty
        var joined: SessionID?
        do throws(RoomError) {
            let reply = try await step(hosted, turn) { (room, turn) throws(RoomError) -> Reply in
                do throws(RoomError) {
                    let before = room.memberCount
                    let entered = try body(&room, &turn)
                    joined = entered.session
                    if room.memberCount > before { self.capacity.admitted(to: hosted.worker) }
                    return entered.reply
                } catch {
                    // A room with waiting guests stays, so that they can be seen.
                    if isNew, error.code != .approvalRequired { room.close(reason: .roomDeleted, turn: &turn) }
                    throw error
                }
            }
            totals.joins += 1
            return reply
        } catch {
            if let joined { await leave(joined) }
            if error.code == .mediaUnavailable { await closeUnused(hosted) }
            throw error
        }
    }
}

// MARK: - Passwords

// Checks are slow and happen outside the actor; afterwards the room's state is checked again.
extension RoomHost {
    /// Refuses a join that the room's lock excludes. Returns at once when this is known: the caller joins without waiting for anything else.
    func checkLock(_ request: JoinRequest) async throws(RoomError) {
        // Repeated if somebody changes the password meanwhile, but not forever.
        for _ in 0..<8 {
            guard let name = lockedRoom(request), let hosted = rooms[name] else { return }
            let (password, hash): (String, PasswordHash)
            do throws(RoomError) { (password, hash) = try Self.password(of: request, for: hosted) } catch {
                throw counted(error)
            }
            let revision = hosted.lockRevision
            let source = PasswordDoor.Source(address: request.address, room: name)
            let media = media
            let outcome = await passwords.check(password, hash, from: source, now: { media.now() })
            guard rooms[name] === hosted, hosted.lockRevision == revision else { continue }
            switch outcome {
            case .right: return
            case .wrong: throw counted(RoomError(.passwordWrong, "the password is not the room's"))
            case .tooMany(let wait):
                throw counted(
                    RoomError(.tooManyAttempts, "too many wrong passwords; try again later", retryAfter: wait))
            case .overloaded: throw counted(.tooManyPasswords)
            }
        }
        throw counted(.tooManyPasswords)
    }

    /// The password of a join to a locked room, and the hash of the correct one.
    static func password(
        of request: JoinRequest, for hosted: HostedRoom
    ) throws(RoomError) -> (String, PasswordHash) {
        guard hosted.room.lock == .password, let hash = hosted.password else {
            throw RoomError(.roomLocked, "the room is locked")
        }
        guard let password = request.password else {
            throw RoomError(.passwordRequired, "the room asks for a password")
        }
        guard password.unicodeScalars.count <= PasswordDoor.maximumLength else {
            throw RoomError(.passwordWrong, "the password is not the room's")
        }
        return (password, hash)
    }

    /// The locked room that a join goes to; nil if it goes to none, or to one that its bearer moderates, is in, or has just left.
    func lockedRoom(_ request: JoinRequest) -> String? {
        let name = roomName(of: request)
        guard let hosted = rooms[name], hosted.room.lock != .open, !request.claims.video.roomAdmin,
            !isKnown(request.claims.identity, in: hosted)
        else { return nil }
        return name
    }
}

// MARK: - Resuming

extension RoomHost {
    /// The socket is closed: the session waits for `resume` as long as the configuration says; media continues.
    ///
    /// `attachment` names the stream that the socket read. Returns false, and does nothing, if another socket has resumed the session
    /// since, or if the session has ended: a socket that closes late must not detach its successor.
    @discardableResult
    public func detach(_ session: SessionID, attachment: UInt64) -> Bool {
        guard let hosted = try? hosted(of: session), mailboxes.close(session, attachment: attachment) else {
            return false
        }
        var turn = newTurn()
        hosted.room.detach(session, turn: &turn)
        return true
    }

    /// The socket of a session has not opened after all: a new session ends, others wait for the next socket as before.
    public func abandon(_ session: SessionID, attachment: UInt64, start: SessionStart) async {
        guard start != .joined else { return await leave(session, attachment: attachment) }
        guard detach(session, attachment: attachment), start == .rejoined, let hosted = try? hosted(of: session) else {
            return
        }
        await step(hosted) { $0.awaitJoin(session, turn: &$1) }
    }

    /// Continues a session on a new socket, with every event after `sequence`. The older socket's events end. `claims` are those of the
    /// new socket's token, which must permit what the session's own token permitted, and extends the stay if it expires later.
    public func resume(
        _ session: SessionID, after sequence: UInt64, claims: AccessClaims
    ) throws(RoomError) -> ResumedSession {
        let hosted = try hosted(of: session)
        do throws(RoomError) {
            try hosted.room.checkResume(session, claims)
        } catch {
            throw counted(error)
        }
        guard let opened = mailboxes.reopen(session, after: sequence) else {
            throw counted(RoomError(.resumeTooLate, "the missed events are no longer available; join again"))
        }
        var turn = newTurn()
        try hosted.room.attach(session, turn: &turn)
        prolong(session, claims, in: hosted, turn)
        totals.resumes += 1
        return ResumedSession(
            session: session, events: opened.events, attachment: opened.attachment)
    }

    /// A token that could no longer begin a stay, because it was revoked or is older than an operator's deletion or removal, does not extend a session.
    private func prolong(_ session: SessionID, _ claims: AccessClaims, in hosted: HostedRoom, _ turn: RoomTurn) {
        guard (try? rules.check(claims, room: hosted.room.name, now: media.now())) != nil else { return }
        hosted.room.prolong(session, claims, turn: turn)
    }

    /// Continues the stay of the participant `sid` on a new socket. The older socket's events end, and the server's own connection is offered anew.
    /// `claims` are those of the new socket's token, which must permit what the session's own token permitted. It does not extend the stay: the server itself
    /// makes clients such tokens for their return.
    public func resume(participant sid: String, claims: AccessClaims) async throws(RoomError) -> ReturnedSession {
        guard let name = claims.video.room, let (hosted, session) = rooms.place(of: sid, in: name),
            hosted.room.participant(session)?.sid == sid,
            // A move has ended its connections: it can continue only by a join.
            hosted.room.awaited(claims) != session
        else { throw counted(RoomError(.sessionNotFound, "there is no such session")) }
        do throws(RoomError) {
            try hosted.room.checkResume(session, claims)
        } catch {
            throw counted(error)
        }
        let snapshot = try hosted.room.snapshot(session)
        let departed = mailboxes.departed(session)
        // The end was sent on the older socket, and may not have arrived: the client must start anew; if it continued, it would wait for media in vain.
        guard mailboxes.knowsConnections(session) else {
            throw counted(RoomError(.resumeTooLate, "a connection of the session has ended; join again"))
        }
        let opened = try await reattach(session, after: snapshot.sequence, hosted)
        totals.resumes += 1
        return ReturnedSession(
            session: session, snapshot: snapshot, departed: departed,
            lastSequence: hosted.room.lastSequence(of: session), events: opened.events, attachment: opened.attachment)
    }

    /// Gives a session another stream, and its client the current state. If the worker already hangs, the older socket continues; if it begins to hang, the
    /// session has no socket, and waits for the next.
    private func reattach(
        _ session: SessionID, after sequence: UInt64, _ hosted: HostedRoom
    ) async throws(RoomError) -> Mailboxes.Opened {
        var attachment: UInt64?
        do throws(RoomError) {
            return try await step(hosted) { (room, turn) throws(RoomError) -> Mailboxes.Opened in
                guard let opened = self.mailboxes.reopen(session, after: sequence) else {
                    throw RoomError(.resumeTooLate, "the missed events are no longer available; join again")
                }
                attachment = opened.attachment
                try room.attach(session, turn: &turn)
                try room.restartReceiving(session, turn: &turn)
                room.sendCurrentState(to: session, turn: &turn)
                return opened
            }
        } catch {
            if let attachment { detach(session, attachment: attachment) }
            throw error
        }
    }
}

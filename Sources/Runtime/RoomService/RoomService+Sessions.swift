public import AccessTokens
import Primitives
public import Rooms

// Coming, going, coming back.

extension RoomService {
    /// Joins a room, creating it where that is allowed.
    public func join(_ request: JoinRequest) async throws(RoomError) -> JoinedSession {
        do throws(RoomError) {
            return try await joinSignalled(request)
        } catch {
            recordRefusal(error, of: request)
            throw error
        }
    }

    private func joinSignalled(_ request: JoinRequest) async throws(RoomError) -> JoinedSession {
        try await checkLock(request)
        let (hosted, turn) = try admit(request)
        let joined = try await enter(hosted, turn) { (room, turn) throws(RoomError) -> (SessionID, JoinedSession) in
            let session = try Self.join(&room, request, isSignalled: true, turn: &turn)
            let snapshot = try room.snapshot(session)
            let events = self.openMailbox(session, room.name)
            room.settle(turn: &turn)
            let joined = JoinedSession(
                session: session, snapshot: snapshot, events: events,
                attachment: self.mailboxes[session]?.attachment ?? 0)
            return (session, joined)
        }
        note(request.origin, of: joined.snapshot.participant.sid, in: hosted)
        return joined
    }

    private func note(_ origin: JoinOrigin?, of participant: String, in hosted: HostedRoom) {
        hosted.stays.setOrigin(origin, of: participant)
        if let verification = origin?.verification { totals.tokenVerification.add(verification.seconds) }
    }

    /// A join; somebody whom nobody has let in yet is noted as waiting.
    private static func join(
        _ room: inout Room, _ request: JoinRequest, isSignalled: Bool, follow: FollowTarget? = nil,
        turn: inout RoomTurn
    ) throws(RoomError) -> SessionID {
        do throws(RoomError) {
            return try room.join(request, isSignalled: isSignalled, follow: follow, turn: &turn)
        } catch {
            if error.code == .approvalRequired { room.noteGuest(request, turn: &turn) }
            throw error
        }
    }

    /// Another token for a session that goes on; refused like a join where the room or the identity is closed to it.
    public func refreshToken(_ claims: AccessClaims, of session: SessionID) async throws(RoomError) {
        let hosted = try hosted(of: session)
        do throws(RoomError) {
            try cutoffs.check(claims, room: hosted.room.name, now: media.now())
            try bans.check(claims.identity, room: hosted.room.name, now: media.now())
            try checkRevocations(claims)
        } catch {
            throw counted(error)
        }
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.refreshToken(claims, of: session, turn: &turn)
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
            let session = try Self.join(&room, request, isSignalled: false, follow: follow, turn: &turn)
            do throws(RoomError) {
                let answer = try room.offer(session, connection: Self.onlyConnection, sdp: offer, turn: &turn)
                guard let participant = room.participant(session) else { throw RoomError(.sessionNotFound) }
                try Self.checkUse(participant, room.subscriptions(of: session))
                self.nameBySession[session] = room.name
                let connected = ConnectedSession(
                    session: session, room: room.name, participant: participant, answer: answer)
                return (session, connected)
            } catch {
                room.leave(session, turn: &turn)
                throw error
            }
        }
        totals.offersAnswered += 1
        note(request.origin, of: connected.participant.sid, in: hosted)
        return connected
    }

    /// A WHIP session that publishes nothing, or a WHEP session that can play nothing, says so at once.
    private static func checkUse(
        _ participant: ParticipantInfo, _ subscriptions: [SubscriptionInfo]
    ) throws(RoomError) {
        switch participant.profile {
        case .publishOnly where participant.tracks.isEmpty:
            throw participant.permissions.canPublish && participant.permissions.publishSources == nil
                ? RoomError(.noCommonCodec, "no track in the offer can be published in this room")
                : RoomError(.permissionDenied, "the token permits none of the tracks in the offer")
        case .viewer where !subscriptions.contains { $0.state == .active }:
            throw RoomError(.noCommonCodec, "no section of the offer can receive media of this room")
        default: return
        }
    }

    /// The connection of WHIP and WHEP sessions.
    static let onlyConnection = "main"

    /// The socket is gone: the session waits for `resume` as long as the configuration says; media goes on.
    ///
    /// `attachment` names the stream that the socket read. false, and nothing is done, when another socket has resumed the session
    /// since, or when the session has ended: a socket that dies late must not detach its successor.
    @discardableResult
    public func detach(_ session: SessionID, attachment: UInt64) -> Bool {
        guard let hosted = try? hosted(of: session), mailboxes[session]?.attachment == attachment else { return false }
        mailboxes[session]?.close()
        var turn = newTurn()
        hosted.room.detach(session, turn: &turn)
        return true
    }

    /// Goes on with a session on a new socket, with every event after `sequence`. The older socket's events end. `claims` are those of the
    /// new socket's token, which must be good for what the session's own was good for.
    public func resume(
        _ session: SessionID, after sequence: UInt64, claims: AccessClaims
    ) throws(RoomError) -> ResumedSession {
        let hosted = try hosted(of: session)
        do throws(RoomError) {
            try hosted.room.checkResume(session, claims)
        } catch {
            throw counted(error)
        }
        guard let events = mailboxes[session]?.open(after: sequence) else {
            throw counted(RoomError(.resumeTooLate, "the missed events are no longer available; join again"))
        }
        var turn = newTurn()
        try hosted.room.attach(session, turn: &turn)
        totals.resumes += 1
        return ResumedSession(
            session: session, events: events, attachment: mailboxes[session]?.attachment ?? 0)
    }

    /// A complete snapshot of now, for a client that wants to start over on its session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        try hosted(of: session).room.snapshot(session)
    }

    /// A sign of life.
    public func keepAlive(_ session: SessionID) {
        guard let hosted = try? hosted(of: session) else { return }
        var turn = newTurn()
        hosted.room.touch(session, turn: &turn)
    }

    /// Says goodbye; ends all connections of the session.
    public func leave(_ session: SessionID) async {
        guard let hosted = try? hosted(of: session) else { return }
        await step(hosted) { $0.leave(session, turn: &$1) }
    }

    /// Everything that needs no description exchange.
    public func perform(_ request: SessionRequest, in session: SessionID) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.perform(request, session: session, turn: &turn)
        }
    }

    private func openMailbox(_ session: SessionID, _ room: String) -> SessionEvents {
        var mailbox = SessionMailbox(maxQueued: configuration.maxQueuedEvents, maxPast: configuration.maxReplayEvents)
        let events = mailbox.open(after: 0)
        mailboxes[session] = mailbox
        nameBySession[session] = room
        return events ?? SessionEvents { $0.finish() }
    }
}

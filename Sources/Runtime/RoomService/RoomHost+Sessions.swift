public import AccessTokens
import MediaControl
import Primitives
public import Rooms

// Requests of sessions while they are in a room.

extension RoomHost {
    /// A complete snapshot of the current state, for a client that wants to start over in its session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        try hosted(of: session).room.snapshot(session)
    }

    /// The session's participant with its tracks.
    public func participant(_ session: SessionID) throws(RoomError) -> ParticipantInfo {
        guard let info = try hosted(of: session).room.participant(session) else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        return info
    }

    /// A new token for a session that continues; refused like a join if the room or the identity is closed to it.
    public func refreshToken(_ claims: AccessClaims, of session: SessionID) async throws(RoomError) {
        let hosted = try hosted(of: session)
        do throws(RoomError) {
            try rules.check(claims, room: hosted.room.name, now: media.now())
        } catch {
            throw counted(error)
        }
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.refreshToken(claims, of: session, turn: &turn)
        }
    }

    /// Whether the session's stay may outlast its token, so that it may get a new one.
    public func mayOutlastToken(_ session: SessionID) -> Bool {
        (try? hosted(of: session))?.room.policy.endsStayWithToken == false
    }

    /// The sids of what the session publishes or has announced, data tracks included.
    public func publications(of session: SessionID) throws(RoomError) -> Set<String> {
        try hosted(of: session).room.publications(of: session)
    }

    /// A track that the session publishes or has announced, as it is or will be.
    public func ownTrack(_ sid: String, of session: SessionID) throws(RoomError) -> TrackInfo? {
        try hosted(of: session).room.ownTrack(sid, of: session)
    }

    /// What the session receives or waits for, oldest first.
    public func subscriptions(of session: SessionID) throws(RoomError) -> [SubscriptionInfo] {
        try hosted(of: session).room.subscriptions(of: session)
    }

    /// The identities of the participants with these sids, if the session may know of them.
    public func identities(of participants: [String], for session: SessionID) -> [String: String] {
        guard !participants.isEmpty, let room = (try? hosted(of: session))?.room else { return [:] }
        var identities: [String: String] = [:]
        for sid in participants {
            guard let found = room.find(sid).flatMap({ room.participant($0) }), found.sid == sid,
                !found.permissions.hidden
            else { continue }
            identities[sid] = found.identity
        }
        return identities
    }

    /// A keep-alive from the socket that reads the stream `attachment`. false: the session has another socket since, and late requests of this one
    /// do not count.
    public func keepAlive(_ session: SessionID, attachment: UInt64) -> Bool {
        guard !mailboxes.hasSuccessor(session, attachment: attachment) else { return false }
        guard let hosted = try? hosted(of: session) else { return true }
        var turn = newTurn()
        hosted.room.touch(session, turn: &turn)
        return true
    }

    /// Says goodbye; ends all connections of the session. `attachment`: the socket that says it, if there is one. Nothing happens if the session has another
    /// socket since: a client that starts anew says goodbye on its old socket, and the new one may be served first.
    public func leave(_ session: SessionID, attachment: UInt64? = nil) async {
        if let attachment, mailboxes.hasSuccessor(session, attachment: attachment) { return }
        guard let hosted = try? hosted(of: session) else { return }
        await step(hosted) { $0.leave(session, turn: &$1) }
    }

    /// All requests that need no exchange of descriptions.
    public func perform(_ request: SessionRequest, in session: SessionID) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.perform(request, session: session, turn: &turn)
        }
    }

    /// Announces what a track is; returns it as it will be, with its sid, before it is offered.
    public func announce(
        _ announcement: TrackAnnouncement, in session: SessionID
    ) async throws(RoomError) -> TrackInfo {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) -> TrackInfo in
            room.touch(session, turn: &turn)
            return try room.announce(announcement, session: session, turn: &turn)
        }
    }

    /// The room that a session is in.
    public func room(of session: SessionID) throws(RoomError) -> String { try hosted(of: session).room.name }

    /// The room that a session is in; participants may be moved. nil: it has ended.
    public func roomName(of session: SessionID) -> String? { rooms.name(of: session) }
}

// MARK: - Offer, answer, ICE, bye

extension RoomHost {
    /// Answers a client's offer on `connection` (a name that the client chose; created on first use).
    public func offer(
        _ session: SessionID, connection: String, sdp: String
    ) async throws(RoomError) -> ConnectionAnswer {
        let hosted = try hosted(of: session)
        do throws(RoomError) {
            let answer = try await step(hosted) { (room, turn) throws(RoomError) -> ConnectionAnswer in
                room.touch(session, turn: &turn)
                return try room.offer(session, connection: connection, sdp: sdp, turn: &turn)
            }
            totals.offersAnswered += 1
            return answer
        } catch {
            // A refusal by the room; a description that cannot be read is only the client's own problem.
            if [.limitExceeded, .permissionDenied, .noCommonCodec, .codecNotAllowed].contains(error.code) {
                recordRefusedPublication(error.code, of: session, in: hosted)
            }
            throw error
        }
    }

    /// Logs that a participant could not publish; at most one entry per second for each code.
    func recordRefusedPublication(_ code: RoomError.Code, of session: SessionID, in hosted: HostedRoom) {
        guard let info = hosted.room.participant(session),
            hosted.mayWriteRefusal(ofPublication: code, at: media.now())
        else { return }
        record(.publicationRefused(participant: info.sid, identity: info.identity, code: code), in: hosted)
    }

    /// Applies a client's answer to the server's offer on `connection`. `offer`: which one is answered, if the client says so: the low half of the number of
    /// its event.
    public func answer(
        _ session: SessionID, connection: String, sdp: String, to offer: UInt32? = nil
    ) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.answer(session, connection: connection, sdp: sdp, to: offer, turn: &turn)
        }
    }

    /// A trickled candidate; nil or empty: end of candidates. ICE-lite learns addresses from checks, so it is only counted.
    public func candidate(
        _ session: SessionID, connection: String, candidate: String?, mid: String?
    ) throws(RoomError) {
        let hosted = try hosted(of: session)
        var turn = newTurn()
        hosted.room.touch(session, turn: &turn)
        try hosted.room.acceptCandidate(candidate, session: session, connection: connection)
    }

    /// A trickle fragment (RFC 8840) as in WHIP's PATCH. Returns nil if it has only candidates. A new ufrag restarts ICE: the
    /// server's fragment and the new tag are returned, and again for the same fragment if it `mayBeRepeated`.
    public func fragment(
        _ session: SessionID, connection: String, fragment: String, mayBeRepeated: Bool = false
    ) async throws(RoomError) -> (fragment: String, iceTag: String)? {
        try await step(try hosted(of: session)) {
            (room, turn) throws(RoomError) -> (fragment: String, iceTag: String)? in
            try room.fragment(
                session, connection: connection, text: fragment, mayBeRepeated: mayBeRepeated, turn: &turn)
        }
    }

    /// Ends one connection, not the member. `keepsSubscriptions`: what it received continues on another one.
    public func bye(
        _ session: SessionID, connection: String, keepsSubscriptions: Bool = false
    ) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.bye(session, connection: connection, keepsSubscriptions: keepsSubscriptions, turn: &turn)
        }
    }

    /// The current ICE tag of a connection (WHIP's ETag).
    public func iceTag(_ session: SessionID, connection: String) throws(RoomError) -> String {
        try hosted(of: session).room.iceTag(session, connection: connection)
    }
}

// MARK: - Messages

extension RoomHost {
    /// A message arrived on a member's data channel: its protocol decodes it, the room decides about it. A refusal becomes an event for its sender.
    func receive(_ payload: DataPayload, label: String, from peer: PeerID, _ hosted: HostedRoom) async {
        guard let sender = hosted.room.messageSender(peer) else { return }
        let message = codecs.decode(payload, label: label, sender.protocol)
        totals.messagesReceived += 1
        await step(hosted, waits: false) { room, turn in
            room.touch(sender.session, turn: &turn)
            do throws(RoomError) {
                guard let message else {
                    throw RoomError(.invalidRequest, "the message is not of the form that Protocol.md describes")
                }
                let isForServer = message.answer.map { self.calls.accept($0, from: sender.session) } ?? false
                if !isForServer { try room.send(message, from: sender.session, over: peer, turn: &turn) }
            } catch {
                room.refuseMessage(self.counted(error), topic: message?.topic, from: sender.session, turn: &turn)
            }
            // Refused or not, the next one may come.
            room.release(payload.cost, of: peer, turn: &turn)
        }
    }

    /// Sends a message of the API into a room.
    public func send(_ message: RoomMessage, toRoom name: String) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.sendFromServer(message, turn: &turn)
        }
    }
}

public import AccessTokens
public import Rooms

/// A stay that goes on, told anew from the beginning.
public struct ReturnedSession: Sendable {
    public let session: SessionID
    public let snapshot: SessionSnapshot
    /// sid and identity of those who left not long ago, whom the client may not know to be gone.
    public let departed: [(participant: String, identity: String)]
    /// What happens after the snapshot.
    public let events: SessionEvents
    /// Names this stream of events; for `detach`.
    public let attachment: UInt64
}

// Coming back without knowing the session's id or the last event: for protocols in which a participant's sid and its token are all that a client has.

extension RoomService {
    /// Goes on with the stay of the participant `sid` on a new socket. The older socket's events end, and the server's own connection is offered anew.
    /// `claims` are those of the new socket's token, which must be good for what the session's own was good for.
    public func resume(participant sid: String, claims: AccessClaims) async throws(RoomError) -> ReturnedSession {
        guard let name = claims.video.room, let hosted = rooms[name], let session = hosted.room.find(sid),
            hosted.room.participant(session)?.sid == sid
        else { throw counted(RoomError(.sessionNotFound, "there is no such session")) }
        do throws(RoomError) {
            try hosted.room.checkResume(session, claims)
        } catch {
            throw counted(error)
        }
        let snapshot = try hosted.room.snapshot(session)
        let departed = mailboxes[session]?.departed ?? []
        guard let events = mailboxes[session]?.open(after: snapshot.sequence) else {
            throw counted(RoomError(.resumeTooLate, "the missed events are no longer available; join again"))
        }
        let attachment = mailboxes[session]?.attachment ?? 0
        totals.resumes += 1
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.attach(session, turn: &turn)
            try room.restartReceiving(session, turn: &turn)
        }
        return ReturnedSession(
            session: session, snapshot: snapshot, departed: departed, events: events, attachment: attachment)
    }

    /// The room that a session is in; participants may be moved. nil: it has ended.
    public func roomName(of session: SessionID) -> String? { nameBySession[session] }

    /// Whether the session's stay may outlast its token, so that it may get another one.
    public func mayOutlastToken(_ session: SessionID) -> Bool {
        (try? hosted(of: session))?.room.policy.endsStayWithToken == false
    }
}

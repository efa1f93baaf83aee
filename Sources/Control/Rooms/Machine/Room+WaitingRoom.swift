import AccessTokens
import Primitives

// The waiting room: whoever may not come in yet asks again and again, and an operator or a moderator decides.

extension Room {
    /// Those who wait, the first to come first.
    public var guests: [WaitingGuest] { waitingRoom.guests }

    /// Notes that a join was refused because nobody has let its bearer in yet. The caller has been given `approval_required`.
    public mutating func noteGuest(_ request: JoinRequest, turn: inout RoomTurn) {
        guard let identity = request.claims.identity else { return }
        let guest = WaitingGuest(
            identity: identity, name: request.claims.name ?? request.name ?? "", since: turn.wallClock)
        guard waitingRoom.ask(guest, at: turn.now) else { return }
        turn.log(.guestWaiting(guest))
        waitingRoomChanged(&turn)
    }

    /// Lets somebody in who waits, or turns it away; `session` is who does so (nil: an operator). Whoever was turned away may ask again after a minute.
    ///
    /// Throws `permission_denied` where `session` is no moderator, and `guest_not_found` where nobody waits with this identity.
    public mutating func decide(
        onGuest identity: String, letsIn: Bool, by session: SessionID?, turn: inout RoomTurn
    ) throws(RoomError) {
        let decider = try session.map { session throws(RoomError) in try member(session) }
        if let decider { try checkModerates(decider) }
        guard letsIn ? waitingRoom.letIn(identity) : waitingRoom.turnAway(identity, at: turn.now) else {
            throw RoomError(.guestNotFound, "nobody waits with this identity")
        }
        turn.log(.guestDecided(identity: identity, isLetIn: letsIn, by: decider?.info.sid))
        waitingRoomChanged(&turn)
    }

    /// For everybody who may decide.
    mutating func waitingRoomChanged(_ turn: inout RoomTurn) {
        let guests = waitingRoom.guests
        for session in roster.sessions where roster[session]?.permissions.roomAdmin == true {
            roster.notify(session, .waitingRoomChanged(guests), &turn)
        }
    }
}

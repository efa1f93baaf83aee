public import AccessTokens
import MediaControl
import Primitives

// The stays of participants, while they last and as they end.

// MARK: - Resumed sessions and keep-alives

extension Room {
    /// Refuses a resume unless its token could have joined this session: the bearer of another key's or identity's token learns
    /// nothing of the session. Grants take effect when somebody joins, so changed ones need a join.
    public func checkResume(_ session: SessionID, _ claims: AccessClaims) throws(RoomError) {
        guard let member = state.roster[session] else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        try member.checkResume(claims, room: name)
    }

    /// A new token for a stay that continues: its expiry and grants apply from now on. Permissions that an operator has changed meanwhile remain.
    ///
    /// Throws `permission_denied` if it is another participant's, the errors of a join, and `grants_changed` if `hidden` or `recorder` differ:
    /// others know of those.
    public mutating func refreshToken(
        _ claims: AccessClaims, of session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try state.member(session)
        try member.checkRefresh(claims, room: name)
        let before = state.settings(of: member)
        state.roster.update(session) { $0.apply(claims, turn) }
        if [SubscribeRule](claims.video) != member.grantedRules { distribution.followRules(of: session, &state, &turn) }
        if member.permissions == member.granted {
            try setPermissions(Permissions(claims.video), of: member.info.sid, turn: &turn)
        }
        bandwidthChanged(of: session, before, &turn)
        makeOffers(&turn)
    }

    /// A keep-alive of a signalled session.
    public mutating func touch(_ session: SessionID, turn: inout RoomTurn) {
        state.roster.update(session) { $0.stay.showSign(at: turn.now) }
    }

    /// The socket of `session` is closed; media continues.
    public mutating func detach(_ session: SessionID, turn: inout RoomTurn) {
        guard let member = state.roster[session], member.options.isSignalled, !member.stay.isDetached else { return }
        state.roster.update(session) { $0.stay.detach(at: turn.now) }
    }

    /// `session` has a socket again.
    public mutating func attach(_ session: SessionID, turn: inout RoomTurn) throws(RoomError) {
        guard try state.member(session).options.isSignalled else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        state.roster.update(session) { member in
            member.stay.attach(at: turn.now)
            for index in member.connections.indices { member.connections[index].clientCameBack() }
        }
    }

    /// The token with which `session` was resumed (``checkResume(_:_:)``) is valid for the room now. If it expires later than the one before, the stay is
    /// extended, and ends when this token is revoked.
    public mutating func prolong(_ session: SessionID, _ claims: AccessClaims, turn: RoomTurn) {
        state.roster.update(session) { $0.prolong(claims, turn) }
    }

    /// Repeats to a member what is announced only when it changes: the demand for layers of its videos, who speaks, which videos are held. Its client has
    /// missed changes, and continues from this state.
    public mutating func sendCurrentState(to session: SessionID, turn: inout RoomTurn) {
        state.sendDemand(to: session, &turn)
        state.sendCurrentState(to: session, &turn)
    }
}

// MARK: - Sessions that continue with a join

extension Room {
    /// The session that a join with `claims` continues: of a member that was moved here without connections, and whose client opens them only by joining.
    public func awaited(_ claims: AccessClaims) -> SessionID? {
        guard let identity = claims.identity else { return nil }
        return state.roster.sessions(identity: identity).last { session in
            state.roster[session]?.isAwaited == true && (try? checkResume(session, claims)) != nil
        }
    }

    /// Continues an awaited session. It already passed the checks for newcomers when it was moved.
    public mutating func rejoin(
        _ session: SessionID, _ request: JoinRequest, turn: inout RoomTurn
    ) throws(RoomError) {
        guard try state.member(session).isAwaited else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        state.roster.update(session) { $0.rejoin(request, turn) }
        distribution.subscribeToAll(session, quietly: true, &state, &turn)
        if request.offering == .serverAtOnce { state.outdated.insert(session) }
    }

    /// The socket with which an awaited session continued has not opened: its client joins once more. The connection that was offered on it, and what is to be
    /// sent there, begin anew with that join: the client has not received the offer.
    public mutating func awaitJoin(_ session: SessionID, turn: inout RoomTurn) {
        state.roster.update(session) { $0.awaitJoin() }
        distribution.memberLeft(session)
        endConnections(of: session, &turn)
        for subscription in state.routing.subscriptions(of: session) {
            distribution.end(subscription, notifies: false, &state, &turn)
        }
    }
}

// MARK: - Leaving

extension Room {
    /// The client of `session` says goodbye. Unknown sessions have already ended; an awaited client that says goodbye has left unless it joins soon.
    public mutating func leave(_ session: SessionID, reason: LeaveReason = .left, turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        guard !member.isAwaited || reason != .left else {
            return state.roster.update(session) { $0.sayGoodbye(turn) }
        }
        remove(session, reason: reason, turn: &turn)
        makeOffers(&turn)
    }

    /// The room is about to end: everybody is notified only of their own end. The departures of all others would be half a million events in a room of a
    /// thousand, more per session than may wait for its reader, whose stream would end before the client learns of the end.
    mutating func fallSilent(_ turn: inout RoomTurn) {
        for session in state.roster.sessions {
            state.roster.update(session) { $0.options.hasRoster = false }
            for subscription in state.routing.subscriptions(of: session) {
                distribution.end(subscription, notifies: false, &state, &turn)
            }
            dataTracks.unsubscribeFromAll(session)
        }
    }

    /// Removes a participant by sid, or all members with an identity (operators).
    public mutating func removeParticipant(
        _ name: String, reason: LeaveReason = .removed, message: String? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let named = try state.session(named: name)
        let all = state.roster.session(sid: name) == named ? [named] : state.roster.sessions(identity: name)
        remove(all, reason: reason, message: message, &turn)
    }

    /// Removes all members with an identity, if there are any.
    public mutating func removeAll(identity: String, message: String?, turn: inout RoomTurn) {
        remove(state.roster.sessions(identity: identity), reason: .removed, message: message, &turn)
    }

    /// Ends the stays whose token was revoked.
    public mutating func endStays(by revocation: Revocations.Subject, turn: inout RoomTurn) {
        let ending = state.roster.sessions.filter { session in
            state.roster[session].map { revocation.names(tokenID: $0.tokenID, identity: $0.info.identity) } ?? false
        }
        remove(ending, reason: .tokenRevoked, &turn)
    }

    private mutating func remove(
        _ sessions: [SessionID], reason: LeaveReason, message: String? = nil, _ turn: inout RoomTurn
    ) {
        for session in sessions { remove(session, reason: reason, message: message, turn: &turn) }
        if !sessions.isEmpty { makeOffers(&turn) }
    }
}

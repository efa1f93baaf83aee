public import AccessTokens
import MediaControl
import Primitives

// The stays of participants, while they go on and as they end.

// MARK: - Resumed sessions and signs of life

extension Room {
    /// Refuses a resume by anybody but the bearer of a token that could have joined this session: another key's or identity's learns
    /// nothing of it. Grants take effect when somebody joins, so changed ones need a join.
    public func checkResume(_ session: SessionID, _ claims: AccessClaims) throws(RoomError) {
        guard let member = state.roster[session] else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        try member.checkResume(claims, room: name)
    }

    /// Another token for a stay that goes on: its expiry and grants count from now on. What an operator has changed meanwhile stays as the operator wants it.
    ///
    /// Throws `permission_denied` where it is another participant's, what a join would throw, and `grants_changed` where `hidden` or `recorder` differ:
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

    /// A sign of life of a signalled session.
    public mutating func touch(_ session: SessionID, turn: inout RoomTurn) {
        state.roster.update(session) { $0.stay.showSign(at: turn.now) }
    }

    /// The socket of `session` is closed; media goes on.
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

    /// The token with which `session` was resumed (``checkResume(_:_:)``) is good for the room now: where it ends later than the one before, the stay goes on with it,
    /// and ends when it is revoked.
    public mutating func prolong(_ session: SessionID, _ claims: AccessClaims, turn: RoomTurn) {
        state.roster.update(session) { $0.prolong(claims, turn) }
    }

    /// Sends a member anew what is announced as it changes only: which layers of its videos are wanted, who speaks, which videos are held. Its client has missed
    /// changes, and begins anew with what it is sent from now on.
    public mutating func sendCurrentState(to session: SessionID, turn: inout RoomTurn) {
        state.sendDemand(to: session, &turn)
        state.sendCurrentState(to: session, &turn)
    }
}

// MARK: - Sessions that go on with a join

extension Room {
    /// The session that a join with `claims` goes on with: of somebody who was moved here without connections, and whose client has them by joining only.
    public func awaited(_ claims: AccessClaims) -> SessionID? {
        guard let identity = claims.identity else { return nil }
        return state.roster.sessions(identity: identity).last { session in
            state.roster[session]?.isAwaited == true && (try? checkResume(session, claims)) != nil
        }
    }

    /// Goes on with an awaited session. What keeps newcomers out was passed by the move.
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

    /// The socket with which an awaited session went on has not opened: its client joins once more. The connection that was offered on it, and what is to be sent
    /// there, begin anew with that: the client has not got the offer.
    public mutating func awaitJoin(_ session: SessionID, turn: inout RoomTurn) {
        state.roster.update(session) { $0.awaitJoin() }
        distribution.memberLeft(session)
        endConnections(of: session, &turn)
        for subscription in state.routing.subscriptions(of: session) {
            distribution.end(subscription, notifies: false, &state, &turn)
        }
    }
}

// MARK: - Going

extension Room {
    /// Says goodbye for `session`. Unknown sessions have already ended; an awaited client that says goodbye has left where it does not join soon.
    public mutating func leave(_ session: SessionID, reason: LeaveReason = .left, turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        guard !member.isAwaited || reason != .left else {
            return state.roster.update(session) { $0.sayGoodbye(turn) }
        }
        remove(session, reason: reason, turn: &turn)
        makeOffers(&turn)
    }

    /// The room is about to end: everybody is notified of their own end alone. The departures of all others are half a million events in a room of a thousand,
    /// more of them for one session than may wait for its reader, which would lose its stream before it learns of the end.
    mutating func fallSilent(_ turn: inout RoomTurn) {
        for session in state.roster.sessions {
            state.roster.update(session) { $0.options.hasRoster = false }
            for subscription in state.routing.subscriptions(of: session) {
                distribution.end(subscription, notifies: false, &state, &turn)
            }
            dataTracks.unsubscribeFromAll(session)
        }
    }

    /// Removes a participant by sid, or all who are here with an identity (operators).
    public mutating func removeParticipant(
        _ name: String, reason: LeaveReason = .removed, message: String? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let named = try state.session(named: name)
        let all = state.roster.session(sid: name) == named ? [named] : state.roster.sessions(identity: name)
        remove(all, reason: reason, message: message, &turn)
    }

    /// Removes all who are here with an identity, if somebody is.
    public mutating func removeAll(identity: String, message: String?, turn: inout RoomTurn) {
        remove(state.roster.sessions(identity: identity), reason: .removed, message: message, &turn)
    }

    /// Ends the stays of those whose token was revoked.
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

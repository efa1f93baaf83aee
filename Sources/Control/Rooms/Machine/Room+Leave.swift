import MediaControl

extension Room {
    /// Says goodbye for `session`. Unknown sessions are already gone.
    public mutating func leave(_ session: SessionID, reason: LeaveReason = .left, turn: inout RoomTurn) {
        guard members[session] != nil else { return }
        remove(session, reason: reason, turn: &turn)
        makeOffers(&turn)
    }

    /// Removes a participant by sid or identity (operators).
    public mutating func removeParticipant(
        _ name: String, reason: LeaveReason = .removed, turn: inout RoomTurn
    ) throws(RoomError) {
        leave(try session(named: name), reason: reason, turn: &turn)
    }

    /// Ends the room and everybody's stay in it.
    public mutating func close(reason: LeaveReason, turn: inout RoomTurn) {
        guard !isEnded else { return }
        for session in order { remove(session, reason: reason, turn: &turn) }
        end(&turn)
    }

    /// Takes a member out with all that belongs to it: others' subscriptions to its tracks, its tracks, its own
    /// subscriptions, its peers; then tells.
    mutating func remove(_ session: SessionID, reason: LeaveReason, turn: inout RoomTurn) {
        guard let member = members[session] else { return }
        members[session]?.options.autoSubscribe = false
        for connection in member.connections { endConnection(session, connection.id, tellsMedia: true, &turn) }
        for track in members[session]?.tracks ?? [] { unpublish(track, &turn) }
        for subscription in members[session]?.subscriptions ?? [] {
            endSubscription(subscription, tells: false, &turn)
        }
        tellAbout(
            session, .participantLeft(participant: member.info.sid, identity: member.info.identity, reason: reason),
            includingSubject: false, &turn)
        tell(session, .ended(reason), &turn)
        members[session] = nil
        changedWaiting.remove(session)
        reservedConnections -= member.promisedConnections
        mayHaveChanged = true
        order.removeAll { $0 == session }
        if awaitingOfferSet.remove(session) != nil { awaitingOffers.removeAll { $0 == session } }
        sessionBySID[member.info.sid] = nil
        if sessionByIdentity[member.info.identity] == session { sessionByIdentity[member.info.identity] = nil }
        turn.effects.append(.sessionEnded(session, reason))
        turn.log(
            .participantLeft(participant: member.info.sid, identity: member.info.identity, reason: reason))
        if dominant == session { setDominant(nil, &turn) }
        if members.isEmpty { emptySince = turn.now }
    }

    /// The room is over.
    mutating func end(_ turn: inout RoomTurn) {
        isEnded = true
        turn.media(.removeRoom(id))
        turn.log(.roomEnded)
        turn.effects.append(.roomEnded)
    }
}

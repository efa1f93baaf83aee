import MediaControl
import Primitives
import SDP

// Connections of members: how they are made, how they end, and what their clients report about them outside of offers and answers.

extension Room {
    /// The connection that the server opens by itself when a member named none for receiving.
    public static let serverConnection = "sub"

    /// A connection that is not yet part of the member.
    mutating func makeConnection(
        _ id: String, for member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) -> Connection {
        guard member.connections.count < state.context.limits.connectionsPerParticipant else {
            throw RoomError(.limitExceeded, "limit of peer connections reached")
        }
        if member.connections.count >= member.promisedConnections { try turn.reserveConnections(1) }
        let peer = PeerID(state.nextNumber()), ice = turn.iceCredentials(state.context)
        return Connection(
            id: id, peer: peer, group: member.connections.first?.group ?? peer, feedbackSSRC: turn.ssrc(),
            negotiation: Negotiation(
                sessionID: turn.sdpSessionID(), policy: state.negotiationRules,
                transport: LocalTransport(ice, state.context),
                firstMid: id == Self.serverConnection ? member.formerConnections.nextMid : 0),
            ice: ice)
    }

    /// Ends one connection, not the member. `keepsSubscriptions`: what it received continues on another one.
    public mutating func bye(
        _ session: SessionID, connection id: String, keepsSubscriptions: Bool = false, turn: inout RoomTurn
    ) throws(RoomError) {
        _ = try state.connection(id, of: session)
        if keepsSubscriptions { state.outdated.insert(session) }
        let subscriptions = keepsSubscriptions ? [] : state.routing.subscriptions(of: session)
        for subscription in subscriptions where state.routing[subscription]?.connection == id {
            distribution.end(subscription, notifies: true, &state, &turn)
        }
        endConnection(session, id, commandsWorker: true, &turn)
        state.roster.notify(
            session, .connectionChanged(connection: id, state: .closed, reason: PeerEndReason.removed.rawValue), &turn)
        makeOffers(&turn)
    }

    /// Removes a connection with the tracks that came in on it; subscriptions on it wait for another connection.
    mutating func endConnection(
        _ session: SessionID, _ id: String, commandsWorker: Bool, reason: PeerEndReason = .removed,
        _ turn: inout RoomTurn
    ) {
        guard let member = state.roster[session], let index = member.connectionIndex(id) else { return }
        let connection = member.connections[index]
        for track in connection.trackByMid.values.sorted() where state.routing[track] != nil {
            unpublish(track, commandsWorker: commandsWorker, &turn)
        }
        for subscription in state.routing.subscriptions(of: member.session)
        where state.routing[subscription]?.connection == id {
            if commandsWorker, state.routing[subscription]?.description != nil {
                turn.media(.unsubscribe(subscription))
            }
            state.routing.update(subscription) { $0.unbind() }
        }
        state.roster.removeConnection(id, of: session)
        state.roster.update(session) { $0.remember(connection) }
        if commandsWorker, connection.isOpened { turn.media(.removePeer(connection.peer)) }
        turn.log(
            .connectionChanged(participant: member.info.sid, connection: id, state: .closed, reason: reason.rawValue))
    }

    /// A trickled candidate. ICE-lite learns addresses from checks, so candidates are only counted for the log: late,
    /// early, doubled and malformed ones do no harm.
    public mutating func acceptCandidate(_ text: String?, session: SessionID, connection id: String) throws(RoomError) {
        _ = try state.member(session)
        guard (text?.utf8.count ?? 0) <= 1_024 else { throw RoomError(.tooLarge, "the candidate is too long") }
        guard let candidate = text.flatMap({ Candidate(parsing: $0) }) else { return }
        state.roster.updateConnection(id, of: session) { $0.trickled.add(candidate) }
    }

    /// A trickled fragment (RFC 8840). New credentials in it restart ICE: the server's fragment is returned. `mayBeRepeated`: the client does not confirm that
    /// it knows of the last restart. Then the same fragment again is answered as before: without the server's credentials its client would never complete the
    /// restart that it began.
    public mutating func fragment(
        _ session: SessionID, connection id: String, text: String, mayBeRepeated: Bool = false, turn: inout RoomTurn
    ) throws(RoomError) -> (fragment: String, iceTag: String)? {
        var connection = try state.connection(id, of: session)
        if mayBeRepeated, let answer = connection.answer(toRepeated: text) { return (answer, connection.ice.ufrag) }
        let member = try state.member(session)
        do {
            let outcome = try connection.negotiation.receiveFragment(text)
            var reply: String?
            if outcome.iceRestarted {
                connection.restartICE(with: turn.iceCredentials(state.context), at: state.context)
                reply = try connection.answerRestart(by: text)
            }
            connection.openOrUpdate(outcome.transport, of: member, iceRestarted: outcome.iceRestarted, state, &turn)
            state.roster.store(connection, of: session)
            return reply.map { ($0, connection.ice.ufrag) }
        } catch {
            throw RoomError(error)
        }
    }
}

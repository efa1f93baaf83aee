import MediaControl
import Primitives
import SDP

extension Room {
    /// The connection that the server opens by itself when a member named none for receiving.
    static let serverConnection = "sub"

    /// A connection that is not yet part of the member.
    mutating func makeConnection(
        _ id: String, for member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) -> Connection {
        guard member.connections.count < context.limits.connectionsPerParticipant else {
            throw RoomError(.limitExceeded, "limit of peer connections reached")
        }
        if member.connections.count >= member.promisedConnections { try turn.takeConnections(1) }
        let ice = turn.iceCredentials()
        return Connection(
            id: id, peer: PeerID(nextNumber()), feedbackSSRC: turn.ssrc(),
            negotiation: Negotiation(
                sessionID: turn.sdpSessionID(), policy: NegotiationPolicy(policy),
                transport: LocalTransport(ice, context)),
            ice: ice)
    }

    /// Writes a changed connection back; adds it where it is new.
    mutating func store(_ connection: Connection, of session: SessionID) {
        if let index = members[session]?.connectionIndex(connection.id) {
            members[session]?.connections[index] = connection
        } else if let member = members[session] {
            members[session]?.connections.append(connection)
            peers[connection.peer] = PeerOwner(session: session, connection: connection.id)
            if member.connections.count >= member.promisedConnections { reservedConnections += 1 }
        }
    }

    func connection(_ id: String, of session: SessionID) throws(RoomError) -> Connection {
        let member = try member(session)
        guard let index = member.connectionIndex(id) else {
            throw RoomError(.connectionNotFound, "there is no such connection")
        }
        return member.connections[index]
    }

    /// Tells the worker of the other side of a connection, as far as it is news.
    func openOrUpdate(
        _ connection: inout Connection, facts: TransportFacts?, member: Member, iceRestarted: Bool,
        _ turn: inout RoomTurn
    ) {
        let remote = facts.map(RemoteTransport.init)
        if !connection.isOpened {
            connection.isOpened = true
            connection.connectingSince = turn.now
            connection.remote = remote
            turn.media(
                .addPeer(
                    PeerDescription(
                        id: connection.peer, room: id, profile: member.profile == .publishOnly ? .publishOnly : .full,
                        localICE: connection.ice, remote: remote, feedbackSSRC: connection.feedbackSSRC)))
            tellPolicy(settings(of: member).downlinkPolicy, to: &connection, member, &turn)
            return
        }
        if iceRestarted {
            connection.connectingSince = turn.now
            turn.media(.restartICE(connection.peer, local: connection.ice))
        }
        if let remote, remote != connection.remote {
            connection.remote = remote
            turn.media(.setRemoteTransport(connection.peer, remote))
        }
    }

    /// Ends one connection, not the member.
    public mutating func bye(_ session: SessionID, connection id: String, turn: inout RoomTurn) throws(RoomError) {
        _ = try connection(id, of: session)
        for subscription in members[session]?.subscriptions ?? [] where subscriptions[subscription]?.connection == id {
            endSubscription(subscription, tells: true, &turn)
        }
        endConnection(session, id, tellsMedia: true, &turn)
        tell(session, .connectionChanged(connection: id, state: .closed, reason: PeerEndReason.removed.rawValue), &turn)
        makeOffers(&turn)
    }

    /// Takes a connection away with the tracks that came in on it; what went out on it waits for another connection.
    mutating func endConnection(
        _ session: SessionID, _ id: String, tellsMedia: Bool, reason: PeerEndReason = .removed, _ turn: inout RoomTurn
    ) {
        guard let member = members[session], let index = member.connectionIndex(id) else { return }
        let connection = member.connections[index]
        for track in member.tracks where tracks[track]?.connection == id {
            unpublish(track, tellsMedia: tellsMedia, &turn)
        }
        for subscription in member.subscriptions where subscriptions[subscription]?.connection == id {
            if tellsMedia, subscriptions[subscription]?.description != nil { turn.media(.unsubscribe(subscription)) }
            subscriptions[subscription]?.unbind()
        }
        members[session]?.connections.removeAll { $0.id == id }
        if member.connections.count > member.promisedConnections { reservedConnections -= 1 }
        peers[connection.peer] = nil
        if tellsMedia, connection.isOpened { turn.media(.removePeer(connection.peer)) }
        turn.log(
            .connectionChanged(participant: member.info.sid, connection: id, state: .closed, reason: reason.rawValue))
    }

    /// A trickled candidate. ICE-lite learns addresses from checks, so candidates are counted for the log and no more: late,
    /// early, doubled and malformed ones do no harm.
    public mutating func takeCandidate(_ text: String?, session: SessionID, connection id: String) throws(RoomError) {
        let member = try member(session)
        guard (text?.utf8.count ?? 0) <= 1_024 else { throw RoomError(.tooLarge, "the candidate is too long") }
        guard let index = member.connectionIndex(id), let candidate = text.flatMap({ Candidate(parsing: $0) }) else {
            return
        }
        members[session]?.connections[index].trickled.add(candidate)
    }

    /// Writes down what was there to connect with.
    func logFailedICE(_ connection: Connection, of member: Member, _ turn: inout RoomTurn) {
        var client = connection.trickled
        for candidate in connection.negotiation.remoteTransport?.candidates ?? [] { client.add(candidate) }
        turn.log(
            .iceFailed(
                participant: member.info.sid, connection: connection.id,
                server: CandidateSummary(connection.negotiation.transport.candidates), client: client))
    }

    /// The tag that changes with each ICE restart.
    public func iceTag(_ session: SessionID, connection id: String) throws(RoomError) -> String {
        try connection(id, of: session).ice.ufrag
    }

    /// A trickled fragment (RFC 8840). New credentials in it restart ICE: the server's fragment comes back.
    public mutating func fragment(
        _ session: SessionID, connection id: String, text: String, turn: inout RoomTurn
    ) throws(RoomError) -> (fragment: String, iceTag: String)? {
        var connection = try connection(id, of: session)
        let member = try member(session)
        do {
            let outcome = try connection.negotiation.receiveFragment(text)
            var reply: String?
            if outcome.iceRestarted {
                connection.ice = turn.iceCredentials()
                connection.negotiation.restartICE(ufrag: connection.ice.ufrag, password: connection.ice.password)
                reply = try connection.negotiation.makeFragment()
            }
            openOrUpdate(
                &connection, facts: outcome.transport, member: member, iceRestarted: outcome.iceRestarted, &turn)
            store(connection, of: session)
            return reply.map { ($0, connection.ice.ufrag) }
        } catch {
            throw RoomError(error)
        }
    }
}

extension Subscription {
    /// No longer on any section.
    mutating func unbind() {
        connection = nil
        mid = nil
        description = nil
        state = .pending
    }
}

extension NegotiationPolicy {
    /// The room's rules in the words of SDP.
    init(_ policy: RoomPolicy) {
        self.init()
        if !policy.audioCodecs.isEmpty { audio = Codecs(policy.audioCodecs.flatMap(\.names), order: .policy) }
        if !policy.videoCodecs.isEmpty { video = Codecs(policy.videoCodecs.flatMap(\.names), order: .policy) }
    }
}

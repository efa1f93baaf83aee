import MediaControl
import Primitives
import SDP

extension Room {
    /// The connection that the server opens by itself when a member named none for receiving.
    public static let serverConnection = "sub"

    /// A connection that is not yet part of the member.
    mutating func makeConnection(
        _ id: String, for member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) -> Connection {
        guard member.connections.count < context.limits.connectionsPerParticipant else {
            throw RoomError(.limitExceeded, "limit of peer connections reached")
        }
        if member.connections.count >= member.promisedConnections { try turn.takeConnections(1) }
        let ice = turn.iceCredentials(context)
        return Connection(
            id: id, peer: PeerID(nextNumber()), feedbackSSRC: turn.ssrc(),
            negotiation: Negotiation(
                sessionID: turn.sdpSessionID(), policy: negotiationRules,
                transport: LocalTransport(ice, context)),
            ice: ice)
    }

    /// What a description may agree to.
    var negotiationRules: NegotiationPolicy {
        var rules = NegotiationPolicy(policy)
        rules.longestMessage = context.limits.acceptedMessageBytes
        return rules
    }

    /// Adds the connection's peer to the worker, or brings what the worker knows of the other side up to date.
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
            commandPolicy(settings(of: member).downlinkPolicy, to: &connection, member, &turn)
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
        for subscription in routing.subscriptions(of: session) where routing[subscription]?.connection == id {
            endSubscription(subscription, notifies: true, &turn)
        }
        endConnection(session, id, commandsWorker: true, &turn)
        roster.notify(
            session, .connectionChanged(connection: id, state: .closed, reason: PeerEndReason.removed.rawValue), &turn)
        makeOffers(&turn)
    }

    /// Takes a connection away with the tracks that came in on it; what went out on it waits for another connection.
    mutating func endConnection(
        _ session: SessionID, _ id: String, commandsWorker: Bool, reason: PeerEndReason = .removed,
        _ turn: inout RoomTurn
    ) {
        guard let member = roster[session], let index = member.connectionIndex(id) else { return }
        let connection = member.connections[index]
        for track in routing.tracks(of: member.session) where routing[track]?.connection == id {
            unpublish(track, commandsWorker: commandsWorker, &turn)
        }
        for subscription in routing.subscriptions(of: member.session) where routing[subscription]?.connection == id {
            if commandsWorker, routing[subscription]?.description != nil { turn.media(.unsubscribe(subscription)) }
            routing.update(subscription) { $0.unbind() }
        }
        roster.removeConnection(id, of: session)
        if commandsWorker, connection.isOpened { turn.media(.removePeer(connection.peer)) }
        turn.log(
            .connectionChanged(participant: member.info.sid, connection: id, state: .closed, reason: reason.rawValue))
    }

    /// A trickled candidate. ICE-lite learns addresses from checks, so candidates are counted for the log and no more: late,
    /// early, doubled and malformed ones do no harm.
    public mutating func takeCandidate(_ text: String?, session: SessionID, connection id: String) throws(RoomError) {
        _ = try member(session)
        guard (text?.utf8.count ?? 0) <= 1_024 else { throw RoomError(.tooLarge, "the candidate is too long") }
        guard let candidate = text.flatMap({ Candidate(parsing: $0) }) else { return }
        roster.updateConnection(id, of: session) { $0.trickled.add(candidate) }
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
                connection.ice = turn.iceCredentials(context)
                connection.negotiation.restartICE(ufrag: connection.ice.ufrag, password: connection.ice.password)
                reply = try connection.negotiation.makeFragment()
            }
            openOrUpdate(
                &connection, facts: outcome.transport, member: member, iceRestarted: outcome.iceRestarted, &turn)
            roster.store(connection, of: session)
            return reply.map { ($0, connection.ice.ufrag) }
        } catch {
            throw RoomError(error)
        }
    }
}

extension NegotiationPolicy {
    /// The room's rules in the words of SDP.
    init(_ policy: RoomPolicy) {
        self.init()
        acceptsDataChannels = true
        if !policy.allowsSimulcast { maximumEncodings = 1 }
        if !policy.h264Profiles.isEmpty { h264Profiles = policy.h264Profiles }
        if !policy.vp9Profiles.isEmpty { vp9Profiles = policy.vp9Profiles }
        if !policy.av1Profiles.isEmpty { av1Profiles = policy.av1Profiles }
        if !policy.audioCodecs.isEmpty { audio = Codecs(policy.audioCodecs.flatMap(\.names), order: .policy) }
        if !policy.videoCodecs.isEmpty { video = Codecs(policy.videoCodecs.flatMap(\.names), order: .policy) }
    }
}

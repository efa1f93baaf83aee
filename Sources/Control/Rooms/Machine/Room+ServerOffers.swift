import MediaControl
import Primitives
import SDP

// The server's own offers: one at a time on a connection; what changes meanwhile goes into the next.

extension Room {
    /// Offers to every member whose descriptions are out of date, as far as the connection is at rest.
    mutating func makeOffers(_ turn: inout RoomTurn) {
        admitWaiting(&turn)
        for session in outdated.take() {
            guard let member = roster[session], member.options.isSignalled else { continue }
            guard member.options.takesOffers else {
                requestSections(session, &turn)
                continue
            }
            openReceivingConnection(session, &turn)
            for connection in roster[session]?.connections ?? [] where connection.negotiation.state == .stable {
                if connection.needsOffer || hasUnplaced(connection, member) { makeOffer(connection, session, &turn) }
            }
        }
    }

    /// Makes the connection "sub" where there is something to send and the client named no connection for it.
    private mutating func openReceivingConnection(_ session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session],
            routing.subscriptionCount(of: session) > 0 || member.options.offering == .serverAtOnce,
            member.profile != .publishOnly
        else { return }
        let name = member.options.receivingConnection ?? Self.serverConnection
        roster.update(session) { $0.options.receivingConnection = name }
        guard name == Self.serverConnection, member.connectionIndex(name) == nil,
            member.options.offering == .serverAtOnce
                || routing.subscriptions(of: member.session).contains(where: { routing[$0]?.state == .pending })
        else { return }
        guard var connection = try? makeConnection(name, for: member, &turn) else {
            // Tried again with the next change of what the member is to receive.
            let reason = PeerEndReason.overloaded.rawValue
            roster.notify(session, .connectionChanged(connection: name, state: .closed, reason: reason), &turn)
            return
        }
        openOrUpdate(&connection, facts: nil, member: member, iceRestarted: false, &turn)
        connection.needsOffer = true
        roster.store(connection, of: session)
    }

    /// Asks a client that makes all offers itself for one, and for the sections that it lacks.
    private mutating func requestSections(_ session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        for connection in member.connections where connection.negotiation.state == .stable {
            guard connection.needsOffer || hasUnplaced(connection, member) else { continue }
            let wanted = wanted(on: connection, of: session).map(\.sending)
            let missing = connection.negotiation.missingSections(for: wanted)
            let need = SectionNeed(
                audio: missing.count { $0.kind == .audio }, video: missing.count { $0.kind == .video })
            guard connection.requestedSections != need else { continue }
            roster.updateConnection(connection.id, of: session) { $0.requestedSections = need }
            roster.notify(
                session, .sectionsNeeded(connection: connection.id, audio: need.audio, video: need.video), &turn)
        }
    }

    private func hasUnplaced(_ connection: Connection, _ member: Member) -> Bool {
        guard connection.id == member.options.receivingConnection else { return false }
        return routing.subscriptions(of: member.session).contains { id in
            guard let subscription = routing[id] else { return false }
            return subscription.connection == nil && subscription.state == .pending
        }
    }

    private mutating func makeOffer(_ connection: Connection, _ session: SessionID, _ turn: inout RoomTurn) {
        var connection = connection
        let wanted = wanted(on: connection, of: session)
        connection.needsOffer = false
        do {
            // A transport can be set up before there is anything to send on it. Whom it is set up for at once has its messages on it, too.
            if roster[session]?.options.offering == .serverAtOnce {
                connection.negotiation.reserveSection(.application)
            } else if wanted.isEmpty {
                connection.negotiation.reserveSection(.audio)
            }
            let offer = try connection.negotiation.makeOffer(sending: wanted.map(\.sending))
            connection.subscriptionByMid = [:]
            for (mid, (id, _)) in zip(offer.mids, wanted) {
                connection.subscriptionByMid[mid] = id
                routing.update(id) { $0.bind(to: connection.id, mid: mid) }
            }
            roster.store(connection, of: session)
            roster.notify(
                session,
                .offer(connection: connection.id, sdp: offer.text, tracks: shown(on: connection.id, of: session)), &turn
            )
        } catch {
            // Only for want of sections, which the subscription limit keeps out of reach: what cannot be shown waits.
            roster.store(connection, of: session)
        }
    }

    /// What the member shall be sent on this connection, in the order of subscription.
    func wanted(on connection: Connection, of session: SessionID) -> [(id: SubscriptionID, sending: LocalSending)] {
        guard let member = roster[session] else { return [] }
        let isReceiving = member.options.receivingConnection == connection.id || member.options.follow != nil
        return routing.subscriptions(of: member.session).compactMap { id in
            guard let subscription = routing[id], subscription.state != .noCommonCodec,
                subscription.connection == connection.id || subscription.connection == nil && isReceiving
            else { return nil }
            return (id, sending(of: subscription, names: member.options.streamNames))
        }
    }

    private func sending(of subscription: RoomSubscription, names: StreamNames) -> LocalSending {
        if let slot = subscription.slot {
            // Voice keeps the parameters of whoever is followed first; pictures may change codec with the person.
            let track = subscription.kind == .audio ? routing.track(of: subscription) : nil
            return LocalSending(
                kind: subscription.kind.sectionKind, ssrc: subscription.ssrc, rtxSSRC: subscription.rtxSSRC,
                cname: sid, streamID: sid, trackID: "\(subscription.kind.rawValue)\(slot)", formats: track?.formats,
                packetTime: track?.packetTime)
        }
        let track = routing.track(of: subscription)
        let publisher = track?.info.participant ?? sid
        let trackID = track?.info.sid ?? subscription.sid
        let isScreen = track?.info.source == .screen || track?.info.source == .screenAudio
        let streamID =
            switch names {
            case .publisher: isScreen ? publisher + "-screen" : publisher
            case .publisherAndTrack: "\(publisher)|\(trackID)"
            }
        return LocalSending(
            kind: subscription.kind.sectionKind, ssrc: subscription.ssrc, rtxSSRC: subscription.rtxSSRC,
            cname: publisher, streamID: streamID, trackID: trackID, formats: track?.formats,
            packetTime: track?.packetTime)
    }

    /// The server offers anew on the connection of its own, with other ICE credentials: its client has lost the socket on
    /// which it got the last offer, or its network.
    public mutating func restartReceiving(_ session: SessionID, turn: inout RoomTurn) throws(RoomError) {
        let member = try member(session)
        guard member.options.takesOffers, let index = member.connectionIndex(Self.serverConnection) else { return }
        var connection = member.connections[index]
        connection.negotiation.rollback()
        connection.ice = turn.iceCredentials(context)
        connection.negotiation.restartICE(ufrag: connection.ice.ufrag, password: connection.ice.password)
        openOrUpdate(&connection, facts: nil, member: member, iceRestarted: true, &turn)
        connection.needsOffer = true
        roster.store(connection, of: session)
        outdated.insert(session)
        makeOffers(&turn)
    }

    /// Takes a client's answer to the server's offer.
    public mutating func answer(
        _ session: SessionID, connection name: String, sdp: String, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try member(session)
        var connection = try connection(name, of: session)
        let accepted: AcceptedAnswer
        do { accepted = try connection.negotiation.receiveAnswer(sdp) } catch { throw RoomError(error) }
        openOrUpdate(&connection, facts: accepted.transport, member: member, iceRestarted: false, &turn)
        acceptData(accepted, on: &connection, member.options.dataProtocol, &turn)
        roster.store(connection, of: session)
        reach(.offer, session, &turn)
        apply(accepted.sections, to: name, of: session, &turn)
        outdated.insert(session)
        makeOffers(&turn)
    }
}

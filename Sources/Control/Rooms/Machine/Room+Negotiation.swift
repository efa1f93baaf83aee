import MediaControl
import Primitives
import SDP

// Descriptions: clients' offers are answered, and the server makes its own, one at a time on a connection; changes meanwhile go into the next.

// MARK: - Clients' offers

extension Room {
    /// Answers a client's offer on the connection that it calls `name`. Refused with `glare` while the server's own offer
    /// waits: the server never gives way, so both sides know who does. `mustBeUsed`: refused also if nothing of it can be published or received.
    public mutating func offer(
        _ session: SessionID, connection name: String, sdp: String, mustBeUsed: Bool = false, turn: inout RoomTurn
    ) throws(RoomError) -> ConnectionAnswer {
        let member = try state.member(session)
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        try state.context.limits.check(connectionID: name)
        // A copy: an error that is thrown before it is stored has changed nothing.
        var connection: Connection
        if let index = member.connectionIndex(name) {
            connection = member.connections[index]
        } else {
            connection = try makeConnection(name, for: member, &turn)
        }
        let outcome = try connection.understand(sdp, of: member)
        if outcome.iceRestarted, connection.isOpened {
            connection.restartICE(with: turn.iceCredentials(state.context), at: state.context)
        }
        let publishing = try PublishingAnswers(to: outcome, on: name, of: member, state, at: turn.now)
        var answers = publishing.sections
        chooseReceivingConnection(name, outcome, session)
        if member.options.follow != nil, state.routing.subscriptionCount(of: session) == 0 {
            distribution.makeSlots(for: outcome, session, &state, &turn)
        }
        let placed = place(on: connection, of: session, into: &answers)
        let answer = try connection.answer(answers)
        guard outcome.transport != nil || connection.isOpened else {
            let refusals = answer.sections.compactMap(\.refusal)
            throw RoomError(
                refusals.contains(.noCommonCodec) ? .noCommonCodec : .unsupportedDescription,
                "the session description is refused: \(refusals.first?.rawValue ?? "it has no media section to connect")"
            )
        }
        if mustBeUsed { try member.checkUse(of: answer.sections) }
        try state.chargeChanges(by: answer.sections, on: connection, of: member, at: turn.now)
        connection.openOrUpdate(outcome.transport, of: member, iceRestarted: outcome.iceRestarted, state, &turn)
        connection.acceptData(outcome, &turn)
        unbindUnplaced(placed, &connection, &turn)
        state.roster.store(connection, of: session)
        reach(.offer, session, &turn)
        apply(answer.sections, to: name, of: session, &turn)
        for (section, code) in publishing.refused { refuseBeyondLimit(section, code, on: name, of: session, &turn) }
        state.outdated.insert(session)
        makeOffers(&turn)
        return ConnectionAnswer(
            sdp: answer.text, tracks: state.shown(on: name, of: session), iceTag: connection.ice.ufrag,
            tracksBeyondLimit: publishing.refused.count)
    }

    /// A client that named no receiving connection and offers only to receive names one by this offer.
    private mutating func chooseReceivingConnection(_ name: String, _ outcome: OfferOutcome, _ session: SessionID) {
        guard let options = state.roster[session]?.options, options.receivingConnection == nil else { return }
        if outcome.sections.contains(where: { $0.remoteReceives && $0.remoteSends == nil && $0.refusal == nil }) {
            state.roster.update(session) { $0.options.receivingConnection = name }
        }
    }

    /// Finds sections for what the member is to receive on this connection: mid -> subscription.
    private func place(
        on connection: Connection, of session: SessionID, into answers: inout [String: SectionAnswer]
    ) -> [String: SubscriptionID] {
        let wanted = state.wanted(on: connection, of: session)
        var idBySSRC: [UInt32: SubscriptionID] = [:]
        for (id, sending) in wanted { idBySSRC[sending.ssrc] = id }
        var placed: [String: SubscriptionID] = [:]
        for (mid, sending) in connection.negotiation.place(wanted.map(\.sending)).placed {
            guard let id = idBySSRC[sending.ssrc], answers[mid]?.rejects != true else { continue }
            answers[mid, default: SectionAnswer()].sending = sending
            placed[mid] = id
        }
        return placed
    }

    /// A subscription that had a section and has none in this offer waits for another.
    private mutating func unbindUnplaced(
        _ placed: [String: SubscriptionID], _ connection: inout Connection, _ turn: inout RoomTurn
    ) {
        let kept = Set(placed.values)
        connection.clientOffered()
        for id in connection.subscriptionByMid.values.sorted() where !kept.contains(id) {
            if state.routing[id]?.description != nil { turn.media(.unsubscribe(id)) }
            state.routing.update(id) { $0.unbind() }
        }
        connection.subscriptionByMid = placed
        for (mid, id) in placed {
            state.routing.update(id) { $0.bind(to: connection.id, mid: mid) }
        }
    }

    /// What was agreed becomes tracks and subscriptions of the worker.
    mutating func apply(
        _ sections: [NegotiatedSection], to name: String, of session: SessionID, _ turn: inout RoomTurn
    ) {
        for section in state.roster[session]?.announcements.inOrder(sections) ?? sections {
            if let receiving = section.receiving {
                receive(receiving, section: section, on: name, of: session, &turn)
            } else if let connection = try? state.connection(name, of: session),
                let track = connection.trackByMid[section.mid]
            {
                unpublish(track, &turn)
            }
            guard let connection = try? state.connection(name, of: session),
                let id = connection.subscriptionByMid[section.mid]
            else { continue }
            if let sending = section.sending {
                distribution.activate(id, section, sending, on: connection, &state, &turn)
            } else {
                distribution.refuse(id, section, on: connection, &state, &turn)
            }
        }
    }
}

// MARK: - The server's offers

extension Room {
    /// Members that one step makes offers to. With a hundred sections, each offer takes up to a millisecond, in which all rooms of the server wait.
    static let offersPerStep = 64

    /// Whether members are left to which a further step, at the latest `advance`, makes offers.
    public var owesOffers: Bool { !hasEnded && !state.outdated.isEmpty }

    /// A step only for these offers: they do not make the announcements of `advance` more frequent.
    public mutating func makeOwedOffers(turn: inout RoomTurn) {
        if owesOffers { makeOffers(&turn) }
    }

    /// Makes offers to members whose descriptions are outdated, unless a negotiation is in progress on the connection.
    mutating func makeOffers(_ turn: inout RoomTurn) {
        distribution.admitWaiting(&state, &turn)
        defer { distribution.announceWaiting(&state, &turn) }
        reviewRegressions(&turn)
        for session in state.outdated.dequeue(Self.offersPerStep) {
            guard let member = state.roster[session], member.options.isSignalled else { continue }
            guard member.options.takesOffers else {
                requestSections(session, &turn)
                continue
            }
            openReceivingConnection(session, &turn)
            guard let receiver = state.roster[session] else { continue }
            for connection in receiver.connections where connection.negotiation.state == .stable {
                var lacking = 0
                if connection.needsOffer || state.hasUnplaced(connection, receiver) {
                    makeOffer(connection, session, lacking: &lacking, &turn)
                }
                if connection.id == receiver.options.receivingConnection {
                    distribution.lacksSections(lacking, for: session)
                }
            }
        }
    }

    /// Makes the connection "sub" if there is something to send and the client named no connection for it.
    private mutating func openReceivingConnection(_ session: SessionID, _ turn: inout RoomTurn) {
        guard let member = state.roster[session],
            state.routing.subscriptionCount(of: session) > 0 || member.options.offering == .serverAtOnce,
            member.profile != .publishOnly
        else { return }
        let name = member.options.receivingConnection ?? Self.serverConnection
        state.roster.update(session) { $0.options.receivingConnection = name }
        guard name == Self.serverConnection, member.connectionIndex(name) == nil,
            member.options.offering == .serverAtOnce
                || state.routing.subscriptions(of: member.session).contains(where: {
                    state.routing[$0]?.state == .pending
                })
        else { return }
        guard var connection = try? makeConnection(name, for: member, &turn) else {
            // Tried again with the next change of what the member is to receive.
            let reason = PeerEndReason.overloaded.rawValue
            state.roster.notify(session, .connectionChanged(connection: name, state: .closed, reason: reason), &turn)
            return
        }
        connection.openOrUpdate(nil, of: member, iceRestarted: false, state, &turn)
        connection.needsOffer = true
        state.roster.store(connection, of: session)
    }

    /// Asks a client that makes all offers itself for an offer, and for the sections that are missing.
    private mutating func requestSections(_ session: SessionID, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        var withoutSection = 0
        defer { distribution.lacksSections(withoutSection, for: session) }
        for var connection in member.connections where connection.negotiation.state == .stable {
            guard connection.needsOffer || state.hasUnplaced(connection, member) else { continue }
            let wanted = state.wanted(on: connection, of: session).map(\.sending)
            let (need, lacking) = connection.requestSections(for: wanted)
            withoutSection += lacking
            guard let need else { continue }
            state.roster.store(connection, of: session)
            state.roster.notify(
                session, .sectionsNeeded(connection: connection.id, audio: need.audio, video: need.video), &turn)
        }
    }

    /// `lacking`: the number of the member's subscriptions that find no section.
    private mutating func makeOffer(
        _ connection: Connection, _ session: SessionID, lacking: inout Int, _ turn: inout RoomTurn
    ) {
        var connection = connection
        var wanted = state.wanted(on: connection, of: session)
        do {
            // A transport can be set up before there is anything to send on it. If it is set up at once, messages go over it, too.
            if state.roster[session]?.options.offering == .serverAtOnce {
                connection.negotiation.reserveSection(.application)
            } else if wanted.isEmpty {
                connection.negotiation.reserveSection(.audio)
            }
            let offer = try connection.makeOffer(&wanted, lacking: &lacking)
            connection.subscriptionByMid = [:]
            for (mid, (id, _)) in zip(offer.mids, wanted) {
                connection.subscriptionByMid[mid] = id
                state.routing.update(id) { $0.bind(to: connection.id, mid: mid) }
            }
            state.roster.store(connection, of: session)
            let shown = state.shown(on: connection.id, of: session)
            state.roster.notify(session, .offer(connection: connection.id, sdp: offer.text, tracks: shown), &turn)
            let sequence = state.roster[session]?.sequence ?? 0
            state.roster.updateConnection(connection.id, of: session) { $0.lastOffer = sequence }
        } catch {
            // Only a lack of sections: subscriptions that find none wait.
            state.roster.store(connection, of: session)
        }
    }

    /// The server makes a new offer on its own connection, with other ICE credentials: its client has lost the socket on
    /// which it got the last offer, or its network has changed.
    public mutating func restartReceiving(_ session: SessionID, turn: inout RoomTurn) throws(RoomError) {
        let member = try state.member(session)
        guard member.options.takesOffers, let index = member.connectionIndex(Self.serverConnection) else { return }
        var connection = member.connections[index]
        connection.negotiation.withdrawOffer()
        connection.forgetAnswer()
        connection.restartICE(with: turn.iceCredentials(state.context), at: state.context)
        connection.openOrUpdate(nil, of: member, iceRestarted: true, state, &turn)
        connection.needsOffer = true
        state.roster.store(connection, of: session)
        state.outdated.insert(session)
        makeOffers(&turn)
    }

    /// Applies a client's answer to the server's offer. An answer that was applied before, and is sent again because its client did not learn that, changes
    /// nothing. `offer`: which offer is answered, if the client says so: the low half of the number of its event.
    public mutating func answer(
        _ session: SessionID, connection name: String, sdp: String, to offer: UInt32? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try state.member(session)
        var connection = try state.connection(name, of: session)
        guard !connection.hasTaken(sdp) else {
            connection.answerWasRepeated()
            return state.roster.store(connection, of: session)
        }
        try connection.checkIsCurrent(offer)
        let accepted = try connection.accept(sdp, of: member)
        connection.openOrUpdate(accepted.transport, of: member, iceRestarted: false, state, &turn)
        connection.acceptData(accepted, member.options.dataProtocol, &turn)
        state.roster.store(connection, of: session)
        reach(.offer, session, &turn)
        apply(accepted.sections, to: name, of: session, &turn)
        state.outdated.insert(session)
        makeOffers(&turn)
    }
}

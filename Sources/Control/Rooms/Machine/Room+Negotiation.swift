import MediaControl
import Primitives
import SDP

// Descriptions: clients' offers are answered, and the server makes its own, one at a time on a connection; what changes meanwhile goes into the next.

// MARK: - Clients' offers

extension Room {
    /// Answers a client's offer on the connection that it calls `name`. Refused with `glare` while the server's own offer
    /// waits: the server never gives way, so both sides know who does.
    public mutating func offer(
        _ session: SessionID, connection name: String, sdp: String, turn: inout RoomTurn
    ) throws(RoomError) -> ConnectionAnswer {
        let member = try state.member(session)
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        try state.context.limits.check(connectionID: name)
        // A copy: what is thrown before it is stored has changed nothing.
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
        var (answers, refused) = try publishing(outcome, name, member, at: turn.now)
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
        try state.chargeChanges(by: answer.sections, on: connection, of: member, at: turn.now)
        connection.openOrUpdate(outcome.transport, of: member, iceRestarted: outcome.iceRestarted, state, &turn)
        connection.acceptData(outcome, &turn)
        unbindUnplaced(placed, &connection, &turn)
        state.roster.store(connection, of: session)
        reach(.offer, session, &turn)
        apply(answer.sections, to: name, of: session, &turn)
        for (section, code) in refused { refuseBeyondLimit(section, code, on: name, of: session, &turn) }
        state.outdated.insert(session)
        makeOffers(&turn)
        return ConnectionAnswer(
            sdp: answer.text, tracks: state.shown(on: name, of: session), iceTag: connection.ice.ufrag,
            tracksBeyondLimit: refused.count)
    }

    /// Which sections of an offer may publish, and which may not because the participant has as many tracks as it may, or has begun too many, or the room has as many
    /// publishers.
    private func publishing(
        _ outcome: OfferOutcome, _ name: String, _ member: Member, at now: MonotonicTime
    ) throws(RoomError) -> (answers: [String: SectionAnswer], refused: [(OfferedSection, RoomError.Code)]) {
        var answers: [String: SectionAnswer] = [:]
        var refused: [(OfferedSection, RoomError.Code)] = []
        // Tracks are counted as they are made.
        var charged = member
        var trackCount = state.routing.encodings(of: member.session).count
        // Other connections have sections of the same names.
        let known = member.connectionIndex(name).map { member.connections[$0].trackByMid } ?? [:]
        for section in outcome.sections where section.refusal == nil {
            guard let kind = MediaKind(section.kind) else { continue }
            var answer = SectionAnswer()
            answer.rejects = kind == .video && policy.audioOnly
            if let sends = section.remoteSends, !answer.rejects {
                let isNew = known[section.mid] == nil
                answer.codecs = codecs(kind, of: known[section.mid], sends, mid: section.mid, member)
                let details = details(kind, of: known[section.mid], sends, mid: section.mid, member)
                answer.takesStereo = kind == .audio && details?.isStereo == true
                answer.asksForDTX = kind == .audio && details?.usesDTX == true
                if kind == .audio, details?.disablesRED == true { answer.codecs = codecsWithoutRED(answer.codecs) }
                answer.receives =
                    member.profile != .viewer
                    && state.permittedSource(kind, sends, mid: section.mid, of: name, member) != nil
                if answer.receives, isNew, let code = try refusal(ofOneBeside: trackCount, &charged, at: now) {
                    answer.receives = false
                    refused.append((section, code))
                }
                if answer.receives, isNew { trackCount += 1 }
                if kind == .video { answer.maximumBitrate = state.negotiatedCap(of: member) }
            }
            answers[section.mid] = answer
        }
        return (answers, refused)
    }

    /// What the section of a track is to carry: the codec that its publisher announced, where the room allows it, and any other where it is not in the offer.
    /// nil: as the offer prefers.
    private func codecs(
        _ kind: MediaKind, of track: TrackID?, _ sending: RemoteSending, mid: String, _ member: Member
    ) -> [CodecName]? {
        let announced = member.announcements.find(sending.trackID, mid, kind)?.announcement.codecs.first
        guard let names = (track.map { state.routing[$0]?.preferredCodec } ?? announced)?.names else { return nil }
        let allowed = state.negotiationRules.codecs(for: kind.sectionKind).allowed
        return allowed.filter(names.contains) + allowed.filter { !names.contains($0) }
    }

    /// What was announced of the track of a section. LiveKit's clients say there and not in their offers whether it is stereo, and may be sent with DTX: they encode,
    /// and others decode, in mono and without pauses unless the server's descriptions have it.
    private func details(
        _ kind: MediaKind, of track: TrackID?, _ sending: RemoteSending, mid: String, _ member: Member
    ) -> TrackDetails? {
        guard let track else { return member.announcements.find(sending.trackID, mid, kind)?.announcement.details }
        return state.routing[track]?.info.details
    }

    /// For a publisher that sends no RED, even where the room prefers it: what it encrypts end to end, nobody could take apart.
    private func codecsWithoutRED(_ codecs: [CodecName]?) -> [CodecName]? {
        let others = (codecs ?? state.negotiationRules.audio.allowed).filter { $0 != .red }
        return others.isEmpty ? codecs : others
    }

    /// Why a member with so many tracks may publish no further one. Where as many others publish as may, the offer is refused as a whole, but not to a
    /// client that has no word for a refused offer, and takes it for the end of the call.
    private func refusal(
        ofOneBeside trackCount: Int, _ member: inout Member, at now: MonotonicTime
    ) throws(RoomError) -> RoomError.Code? {
        do throws(RoomError) {
            try state.checkPublisherLimit(member)
        } catch {
            guard member.options.recovery == .byJoining else { throw error }
            return error.code
        }
        let limits = state.context.limits
        guard trackCount < limits.tracksPerParticipant else { return .limitExceeded }
        do throws(RoomError) {
            try member.budgets.charge(.publication, to: state.roster.count, limits, at: now)
            return nil
        } catch { return error.code }
    }

    /// A client that named no receiving connection and offers to receive only has named one by that.
    private mutating func chooseReceivingConnection(_ name: String, _ outcome: OfferOutcome, _ session: SessionID) {
        guard let options = state.roster[session]?.options, options.receivingConnection == nil else { return }
        if outcome.sections.contains(where: { $0.remoteReceives && $0.remoteSends == nil && $0.refusal == nil }) {
            state.roster.update(session) { $0.options.receivingConnection = name }
        }
    }

    /// Finds sections for what the member shall receive on this connection: mid -> subscription.
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

    /// What had a section and has none in this offer waits for another.
    private mutating func unbindUnplaced(
        _ placed: [String: SubscriptionID], _ connection: inout Connection, _ turn: inout RoomTurn
    ) {
        let kept = Set(placed.values)
        // The client's own offer tells anew what is sent, so no offer of the server's is due for this connection.
        connection.needsOffer = false
        connection.requestedSections = nil
        for id in connection.subscriptionByMid.values.sorted() where !kept.contains(id) {
            if state.routing[id]?.description != nil { turn.media(.unsubscribe(id)) }
            state.routing.update(id) { $0.unbind() }
        }
        connection.subscriptionByMid = placed
        for (mid, id) in placed {
            state.routing.update(id) { $0.bind(to: connection.id, mid: mid) }
        }
    }

    /// Those whose track was announced under its own id come before those that take what is left: a client goes on sending what the server has ended. Second
    /// encodings come behind their tracks.
    private func announcedFirst(_ sections: [NegotiatedSection], of session: SessionID) -> [NegotiatedSection] {
        guard let announcements = state.roster[session]?.announcements else { return sections }
        func isAnnounced(_ section: NegotiatedSection) -> Bool { announcements.names(section.receiving?.trackID) }
        func isBackup(_ section: NegotiatedSection) -> Bool {
            announcements.namesBackup(section.receiving?.trackID, section.mid)
        }
        let tracks = sections.filter { !isBackup($0) }
        return tracks.filter(isAnnounced) + tracks.filter { !isAnnounced($0) } + sections.filter(isBackup)
    }

    /// What was agreed becomes tracks and subscriptions of the worker.
    mutating func apply(
        _ sections: [NegotiatedSection], to name: String, of session: SessionID, _ turn: inout RoomTurn
    ) {
        for section in announcedFirst(sections, of: session) {
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
    /// Members that one step makes offers to. Of a hundred sections each takes up to a millisecond, in which all rooms of the server wait.
    static let offersPerStep = 64

    /// Whether members are left that a further step, `advance` at the latest, makes offers to.
    public var owesOffers: Bool { !hasEnded && !state.outdated.isEmpty }

    /// A step for these offers and nothing else: what `advance` announces is not announced more often for them.
    public mutating func makeOwedOffers(turn: inout RoomTurn) {
        if owesOffers { makeOffers(&turn) }
    }

    /// Offers to members whose descriptions are out of date, as far as the connection is at rest.
    mutating func makeOffers(_ turn: inout RoomTurn) {
        distribution.admitWaiting(&state, &turn)
        defer { distribution.announceWaiting(&state, &turn) }
        reviewRegressions(&turn)
        for session in state.outdated.take(Self.offersPerStep) {
            guard let member = state.roster[session], member.options.isSignalled else { continue }
            guard member.options.takesOffers else {
                requestSections(session, &turn)
                continue
            }
            openReceivingConnection(session, &turn)
            for connection in state.roster[session]?.connections ?? [] where connection.negotiation.state == .stable {
                if connection.needsOffer || state.hasUnplaced(connection, member) {
                    makeOffer(connection, session, &turn)
                }
            }
        }
    }

    /// Makes the connection "sub" where there is something to send and the client named no connection for it.
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

    /// Asks a client that makes all offers itself for one, and for the sections that it lacks.
    private mutating func requestSections(_ session: SessionID, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        var withoutSection = 0
        defer { distribution.lacksSections(withoutSection, for: session) }
        for connection in member.connections where connection.negotiation.state == .stable {
            guard connection.needsOffer || state.hasUnplaced(connection, member) else { continue }
            let wanted = state.wanted(on: connection, of: session).map(\.sending)
            let missing = connection.negotiation.missingSections(for: wanted)
            // An offer of more sections would be refused, and end the call: what finds none waits until something else ends.
            let asked = missing.prefix(connection.negotiation.remainingSections)
            withoutSection += missing.count - asked.count
            let need = SectionNeed(audio: asked.count { $0.kind == .audio }, video: asked.count { $0.kind == .video })
            // Where no section can be added, another offer is good for what finds one that is free.
            let isFull = asked.isEmpty && !missing.isEmpty
            let findsSection = wanted.count - missing.count > connection.subscriptionByMid.count
            guard connection.needsOffer || !isFull || findsSection, connection.requestedSections != need else {
                continue
            }
            state.roster.updateConnection(connection.id, of: session) { $0.requestedSections = need }
            state.roster.notify(
                session, .sectionsNeeded(connection: connection.id, audio: need.audio, video: need.video), &turn)
        }
    }

    private mutating func makeOffer(_ connection: Connection, _ session: SessionID, _ turn: inout RoomTurn) {
        var connection = connection
        var wanted = state.wanted(on: connection, of: session)
        connection.needsOffer = false
        do {
            // A transport can be set up before there is anything to send on it. Whom it is set up for at once has its messages on it, too.
            if state.roster[session]?.options.offering == .serverAtOnce {
                connection.negotiation.reserveSection(.application)
            } else if wanted.isEmpty {
                connection.negotiation.reserveSection(.audio)
            }
            let offer = try connection.makeOffer(&wanted)
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
            // Only for want of sections, which the subscription limit keeps out of reach: what cannot be shown waits.
            state.roster.store(connection, of: session)
        }
    }

    /// The server offers anew on the connection of its own, with other ICE credentials: its client has lost the socket on
    /// which it got the last offer, or its network.
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

    /// Takes a client's answer to the server's offer. One that was taken already, and is sent again because its client did not learn that, changes nothing. `offer`: which
    /// one is answered, where the client says so: the low half of the number of its event.
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

import MediaControl
import Primitives
import SDP

extension Room {
    /// Answers a client's offer on the connection that it calls `name`. Refused with `glare` while the server's own offer
    /// waits: the server never gives way, so both sides know who does.
    public mutating func offer(
        _ session: SessionID, connection name: String, sdp: String, turn: inout RoomTurn
    ) throws(RoomError) -> ConnectionAnswer {
        let member = try member(session)
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        try checkConnectionID(name)
        // A copy: what is thrown before it is stored has changed nothing.
        var connection: Connection
        if let index = member.connectionIndex(name) {
            connection = member.connections[index]
        } else {
            connection = try makeConnection(name, for: member, &turn)
        }
        let outcome = try connection.understand(sdp)
        if outcome.iceRestarted, connection.isOpened {
            connection.ice = turn.iceCredentials()
            connection.negotiation.restartICE(ufrag: connection.ice.ufrag, password: connection.ice.password)
        }
        var (answers, beyondLimit) = try publishing(outcome, name, member)
        chooseReceivingConnection(name, outcome, session)
        if member.options.follow != nil, member.subscriptions.isEmpty { makeSlots(for: outcome, session, &turn) }
        let placed = place(on: connection, of: session, into: &answers)
        let answer = try connection.answer(answers)
        guard outcome.transport != nil || connection.isOpened else {
            let refusals = answer.sections.compactMap(\.refusal)
            throw RoomError(
                refusals.contains(.noCommonCodec) ? .noCommonCodec : .unsupportedDescription,
                "the session description is refused: \(refusals.first?.rawValue ?? "it has no media section to connect")"
            )
        }
        openOrUpdate(&connection, facts: outcome.transport, member: member, iceRestarted: outcome.iceRestarted, &turn)
        unbindUnplaced(placed, &connection, &turn)
        store(connection, of: session)
        apply(answer.sections, to: name, of: session, &turn)
        for section in beyondLimit {
            tell(
                session,
                .publicationRefused(
                    connection: name, mid: section.mid, track: section.remoteSends?.trackID, code: .limitExceeded),
                &turn)
        }
        requestOffer(session)
        makeOffers(&turn)
        return ConnectionAnswer(sdp: answer.text, tracks: shown(on: name, of: session), iceTag: connection.ice.ufrag)
    }

    /// Which sections of an offer may publish, and which may not because the participant has as many tracks as it may.
    private func publishing(
        _ outcome: OfferOutcome, _ name: String, _ member: Member
    ) throws(RoomError) -> (answers: [String: SectionAnswer], beyondLimit: [OfferedSection]) {
        var answers: [String: SectionAnswer] = [:]
        var beyondLimit: [OfferedSection] = []
        var trackCount = member.tracks.count
        // Other connections have sections of the same names.
        let known = Set(member.connectionIndex(name).map { member.connections[$0].trackByMid.keys.map(\.self) } ?? [])
        for section in outcome.sections where section.refusal == nil {
            guard let kind = MediaKind(section.kind) else { continue }
            var answer = SectionAnswer()
            answer.rejects = kind == .video && policy.audioOnly
            if let sends = section.remoteSends, !answer.rejects {
                let isNew = !known.contains(section.mid)
                if isNew { try checkPublisherLimit(member) }
                answer.receives =
                    member.profile != .viewer
                    && permittedSource(kind, sends, mid: section.mid, member: member) != nil
                if answer.receives, isNew, trackCount == context.limits.tracksPerParticipant {
                    answer.receives = false
                    beyondLimit.append(section)
                }
                if answer.receives, isNew { trackCount += 1 }
                if kind == .video { answer.maximumBitrate = negotiatedCap(of: member) }
            }
            answers[section.mid] = answer
        }
        return (answers, beyondLimit)
    }

    private func checkPublisherLimit(_ member: Member) throws(RoomError) {
        guard let most = policy.maxPublishers, member.tracks.isEmpty else { return }
        guard members.values.count(where: { !$0.tracks.isEmpty }) < most else {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
    }

    /// A client that named no receiving connection and offers to receive only has named one by that.
    private mutating func chooseReceivingConnection(_ name: String, _ outcome: OfferOutcome, _ session: SessionID) {
        guard let options = members[session]?.options, options.receivingConnection == nil else { return }
        if outcome.sections.contains(where: { $0.remoteReceives && $0.remoteSends == nil && $0.refusal == nil }) {
            members[session]?.options.receivingConnection = name
        }
    }

    /// WHEP: each receiving section follows somebody.
    private mutating func makeSlots(for outcome: OfferOutcome, _ session: SessionID, _ turn: inout RoomTurn) {
        var next: [MediaKind: Int] = [:]
        for section in outcome.sections where section.remoteReceives && section.refusal == nil {
            guard let kind = MediaKind(section.kind), let member = members[session],
                !(kind == .video && member.options.audioOnly), member.permissions.canSubscribe
            else { continue }
            let slot = next[kind, default: 0]
            next[kind] = slot + 1
            let id = makeSubscription(session, kind: kind, track: nil, slot: slot, &turn)
            if let subscription = subscriptions[id] {
                show(trackToShow(in: subscription, member), in: id, &turn)
            }
        }
    }

    /// Finds sections for what the member shall receive on this connection: mid -> subscription.
    private func place(
        on connection: Connection, of session: SessionID, into answers: inout [String: SectionAnswer]
    ) -> [String: SubscriptionID] {
        let wanted = wanted(on: connection, of: session)
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
        for id in connection.subscriptionByMid.values.sorted() where !kept.contains(id) {
            if subscriptions[id]?.description != nil { turn.media(.unsubscribe(id)) }
            subscriptions[id]?.unbind()
        }
        connection.subscriptionByMid = placed
        for (mid, id) in placed {
            subscriptions[id]?.connection = connection.id
            subscriptions[id]?.mid = mid
        }
    }

    /// mid -> sid of the track that comes in or goes out on it.
    func shown(on name: String, of session: SessionID) -> [String: String] {
        guard let connection = try? connection(name, of: session) else { return [:] }
        var shown: [String: String] = [:]
        for (mid, id) in connection.subscriptionByMid {
            if let track = subscriptions[id]?.track { shown[mid] = tracks[track]?.info.sid }
        }
        for (mid, id) in connection.trackByMid { shown[mid] = tracks[id]?.info.sid }
        return shown
    }
}

extension Connection {
    fileprivate mutating func understand(_ sdp: String) throws(RoomError) -> OfferOutcome {
        do { return try negotiation.receiveOffer(sdp) } catch { throw RoomError(error) }
    }

    fileprivate mutating func answer(_ answers: [String: SectionAnswer]) throws(RoomError) -> AnswerOutcome {
        do { return try negotiation.makeAnswer(answers) } catch { throw RoomError(error) }
    }
}

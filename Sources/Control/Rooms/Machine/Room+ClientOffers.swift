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
            connection.ice = turn.iceCredentials(context)
            connection.negotiation.restartICE(ufrag: connection.ice.ufrag, password: connection.ice.password)
        }
        var (answers, beyondLimit) = try publishing(outcome, name, member)
        chooseReceivingConnection(name, outcome, session)
        if member.options.follow != nil, routing.subscriptionCount(of: session) == 0 {
            makeSlots(for: outcome, session, &turn)
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
        openOrUpdate(&connection, facts: outcome.transport, member: member, iceRestarted: outcome.iceRestarted, &turn)
        unbindUnplaced(placed, &connection, &turn)
        roster.store(connection, of: session)
        reach(.offer, session, &turn)
        apply(answer.sections, to: name, of: session, &turn)
        for section in beyondLimit {
            roster.notify(
                session,
                .publicationRefused(
                    connection: name, mid: section.mid, track: section.remoteSends?.trackID, code: .limitExceeded),
                &turn)
        }
        outdated.insert(session)
        makeOffers(&turn)
        return ConnectionAnswer(sdp: answer.text, tracks: shown(on: name, of: session), iceTag: connection.ice.ufrag)
    }

    /// Which sections of an offer may publish, and which may not because the participant has as many tracks as it may.
    private func publishing(
        _ outcome: OfferOutcome, _ name: String, _ member: Member
    ) throws(RoomError) -> (answers: [String: SectionAnswer], beyondLimit: [OfferedSection]) {
        var answers: [String: SectionAnswer] = [:]
        var beyondLimit: [OfferedSection] = []
        var trackCount = routing.tracks(of: member.session).count
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
        guard let most = policy.maxPublishers, !routing.publishes(member.session) else { return }
        guard routing.publisherCount < most else {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
    }

    /// A client that named no receiving connection and offers to receive only has named one by that.
    private mutating func chooseReceivingConnection(_ name: String, _ outcome: OfferOutcome, _ session: SessionID) {
        guard let options = roster[session]?.options, options.receivingConnection == nil else { return }
        if outcome.sections.contains(where: { $0.remoteReceives && $0.remoteSends == nil && $0.refusal == nil }) {
            roster.update(session) { $0.options.receivingConnection = name }
        }
    }

    /// WHEP: each receiving section follows somebody.
    private mutating func makeSlots(for outcome: OfferOutcome, _ session: SessionID, _ turn: inout RoomTurn) {
        var next: [MediaKind: Int] = [:]
        for section in outcome.sections where section.remoteReceives && section.refusal == nil {
            guard let kind = MediaKind(section.kind), let member = roster[session],
                !(kind == .video && isAudioOnly(member)), member.permissions.canSubscribe
            else { continue }
            let slot = next[kind, default: 0]
            next[kind] = slot + 1
            let id = makeSubscription(session, kind: kind, track: nil, slot: slot, &turn)
            if let subscription = routing[id] {
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
            if routing[id]?.description != nil { turn.media(.unsubscribe(id)) }
            routing.update(id) { $0.unbind() }
        }
        connection.subscriptionByMid = placed
        for (mid, id) in placed {
            routing.update(id) { $0.bind(to: connection.id, mid: mid) }
        }
    }

    /// mid -> sid of the track that comes in or goes out on it.
    func shown(on name: String, of session: SessionID) -> [String: String] {
        guard let connection = try? connection(name, of: session) else { return [:] }
        var shown: [String: String] = [:]
        for (mid, id) in connection.subscriptionByMid {
            if let subscription = routing[id] { shown[mid] = routing.track(of: subscription)?.info.sid }
        }
        for (mid, id) in connection.trackByMid { shown[mid] = routing[id]?.info.sid }
        return shown
    }

    /// What was agreed becomes tracks and subscriptions of the worker.
    mutating func apply(
        _ sections: [NegotiatedSection], to name: String, of session: SessionID, _ turn: inout RoomTurn
    ) {
        for section in sections {
            if let receiving = section.receiving {
                receive(receiving, section: section, on: name, of: session, &turn)
            } else if let connection = try? connection(name, of: session),
                let track = connection.trackByMid[section.mid]
            {
                unpublish(track, &turn)
            }
            guard let connection = try? connection(name, of: session),
                let id = connection.subscriptionByMid[section.mid]
            else { continue }
            if let sending = section.sending {
                activate(id, section, sending, on: connection, &turn)
            } else {
                refuse(id, section, on: connection, &turn)
            }
        }
    }

    private mutating func activate(
        _ id: SubscriptionID, _ section: NegotiatedSection, _ sending: AgreedSending, on connection: Connection,
        _ turn: inout RoomTurn
    ) {
        guard let subscription = routing[id] else { return }
        let hasRTX = sending.formats.contains { $0.rtxPayloadType != nil }
        var description = SubscriptionDescription(
            id: id, peer: connection.peer, track: subscription.track, kind: subscription.kind, mid: section.mid,
            ssrc: subscription.ssrc, rtxSSRC: hasRTX ? subscription.rtxSSRC : nil, cname: sending.local.cname,
            formats: sending.formats.map(PayloadFormat.init), extensions: HeaderExtensionIDs(sending.extensions),
            feedback: FeedbackKinds(sending.feedback), paused: isPaused(subscription),
            preference: subscription.preference)
        if subscription.kind == .video {
            description.playoutDelay = policy.playoutDelay(after: subscription.description?.playoutDelay)
        }
        if subscription.description == nil {
            turn.media(.subscribe(description))
            if subscription.display != DisplayPreference() {
                turn.media(.setDisplayPreference(id, subscription.display))
            }
        } else if subscription.description != description {
            turn.media(.updateSubscription(description))
        }
        routing.update(id) { subscription in
            subscription.bind(to: connection.id, mid: section.mid)
            subscription.description = description
            subscription.state = .active
        }
        guard subscription.state != .active else { return }
        subscriptionChanged(id, &turn)
    }

    /// A section that was to be sent on was not agreed.
    private mutating func refuse(
        _ id: SubscriptionID, _ section: NegotiatedSection, on connection: Connection, _ turn: inout RoomTurn
    ) {
        guard let subscription = routing[id], let member = roster[subscription.member] else { return }
        // A client that has none of the codecs answers with port 0.
        if section.refusal == .noCommonCodec || section.refusal == .rejectedByRemote {
            if subscription.description != nil { turn.media(.unsubscribe(id)) }
            routing.update(id) { subscription in
                subscription.unbind()
                subscription.state = .noCommonCodec
            }
            roster.updateConnection(connection.id, of: member.session) { $0.subscriptionByMid[section.mid] = nil }
            let track = routing.track(of: subscription)?.info.sid
            turn.log(.noCommonCodec(participant: member.info.sid, track: track))
            subscriptionChanged(id, &turn)
        } else {
            // The client does not want it: it stays away until asked for.
            if let track = subscription.track { roster.update(member.session) { _ = $0.unwanted.insert(track) } }
            endSubscription(id, notifies: true, &turn)
        }
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

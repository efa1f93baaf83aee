import MediaControl

/// Data tracks: a member publishes frames on a data channel, and its subscribers get them. Members that may send messages may publish them; members that may
/// subscribe to media may receive them. Subscribe rules and audiences apply only to media, as with messages.
///
/// Two publishers may use the same number for different tracks, so each track has a number of the room, the same for all receivers: a frame is written once.
struct DataTracks: Sendable {
    private var streams: [String: Stream] = [:]
    private var sidByNumber: [UInt16: String] = [:]
    private var lastNumber: UInt16 = 0
    /// sids of what each member receives.
    private var received: [SessionID: Set<String>] = [:]

    private struct Stream: Sendable {
        let publisher: SessionID
        let number: UInt16
        /// In the order in which they subscribed.
        var receivers: [SessionID] = []
    }

    /// All that a member receives, in the order of their numbers.
    func received(by session: SessionID, _ state: RoomState) -> [ReceivedDataTrack] {
        (received[session] ?? []).compactMap { sid in
            guard let stream = streams[sid], let publisher = state.roster[stream.publisher] else { return nil }
            return ReceivedDataTrack(
                number: stream.number, track: sid, participant: publisher.info.sid, identity: publisher.info.identity)
        }.sorted { $0.number < $1.number }
    }

    /// Replaces the number in a frame with the room's; returns the frame's receivers. Throws `track_not_found` if its sender publishes no such track.
    func route(_ frame: inout RoomMessage, handle: UInt16, of sender: Member) throws(RoomError) -> [SessionID] {
        guard let track = sender.info.dataTracks.first(where: { $0.handle == handle }), let stream = streams[track.sid]
        else { throw RoomError(.trackNotFound, "the participant has no data track with this handle") }
        frame.dataTrack = stream.number
        return stream.receivers
    }
}

// MARK: - Requests of members

extension DataTracks {
    mutating func perform(
        _ request: DataTrackRequest, by member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        switch request {
        case .publish(let track): try publish(track, by: member, &state, &turn)
        case .unpublish(let handle):
            guard let track = member.info.dataTracks.first(where: { $0.handle == handle }) else {
                throw RoomError(.trackNotFound, "the participant has no data track with this handle")
            }
            unpublish([track], of: member.session, &state, &turn)
        case .setSubscriptions(let subscriptions): try set(subscriptions, of: member, &state, &turn)
        }
    }

    /// Refused if the member may not send messages, has a data track with this name or handle, or has reached its limit.
    private mutating func publish(
        _ announced: DataTrackInfo, by member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        try state.checkSendsMessages(member)
        guard !member.isHidden else {
            throw RoomError(.permissionDenied, "nobody would learn of a hidden participant's data track")
        }
        try announced.check(beside: member.info.dataTracks, atMost: state.context.limits.dataTracksPerParticipant)
        guard sidByNumber.count < Int(UInt16.max) else {
            throw RoomError(.limitExceeded, "the room has as many data tracks as there are numbers for")
        }
        var track = announced
        track.sid = turn.sid("DTR_")
        state.roster.update(member.session) { $0.info.dataTracks.append(track) }
        state.roster.notify(member.session, .dataTrackPublished(track), &turn)
        // Others are notified of a track before they get the number of its frames.
        state.participantChanged(member.session, &turn)
        add(track.sid, of: member.session, state)
        notify(streams[track.sid]?.receivers ?? [], &state, &turn)
    }

    private mutating func unpublish(
        _ tracks: [DataTrackInfo], of session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard !tracks.isEmpty else { return }
        let sids = Set(tracks.map(\.sid))
        state.roster.update(session) { $0.info.dataTracks.removeAll { sids.contains($0.sid) } }
        for track in tracks { state.roster.notify(session, .dataTrackUnpublished(track), &turn) }
        state.participantChanged(session, &turn)
        let receivers = remove(tracks)
        notify(state.roster.sessions.filter(receivers.contains), &state, &turn)
    }

    /// Notifies the member of what it receives now, even if that has not changed: its client waits for this.
    private mutating func set(
        _ subscriptions: [DataTrackRequest.Subscription], of member: Member, _ state: inout RoomState,
        _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard member.permissions.canSubscribe || !subscriptions.contains(where: \.subscribes) else {
            throw RoomError(.permissionDenied, "the token does not permit subscribing (canSubscribe)")
        }
        for one in subscriptions {
            if one.subscribes {
                subscribe(member.session, to: one.track)
            } else {
                unsubscribe(member.session, from: one.track)
            }
        }
        notify([member.session], &state, &turn)
    }
}

// MARK: - Members that come and leave

extension DataTracks {
    /// A member has joined, perhaps from another room with its data tracks.
    mutating func memberArrived(_ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn) {
        if member.subscribesToDataTracks { for sid in streams.keys { subscribe(member.session, to: sid) } }
        for track in member.info.dataTracks { add(track.sid, of: member.session, state) }
        notify(member.info.dataTracks.first.flatMap { streams[$0.sid]?.receivers } ?? [], &state, &turn)
    }

    /// A member was removed from the roster.
    mutating func memberLeft(_ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn) {
        unsubscribeFromAll(member.session)
        let receivers = remove(member.info.dataTracks)
        guard !receivers.isEmpty else { return }
        notify(state.roster.sessions.filter(receivers.contains), &state, &turn)
    }

    /// A member may subscribe again: if it wanted all data tracks, it gets them again.
    mutating func subscribeAgain(_ session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard state.roster[session]?.subscribesToDataTracks == true, !streams.isEmpty else { return }
        for sid in streams.keys { subscribe(session, to: sid) }
        notify([session], &state, &turn)
    }

    /// Ends the data tracks that a member may no longer publish, and the subscriptions that it may no longer have.
    mutating func endWhatIsNotPermitted(of session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        if !member.permissions.canPublishData || !state.policy.allowsMessages {
            unpublish(member.info.dataTracks, of: session, &state, &turn)
        }
        guard !member.permissions.canSubscribe, received[session] != nil else { return }
        unsubscribeFromAll(session)
        notify([session], &state, &turn)
    }

    private mutating func subscribe(_ session: SessionID, to sid: String) {
        guard let stream = streams[sid], stream.publisher != session,
            received[session, default: []].insert(sid).inserted
        else { return }
        streams[sid]?.receivers.append(session)
    }

    private mutating func unsubscribe(_ session: SessionID, from sid: String) {
        guard received[session]?.remove(sid) != nil else { return }
        streams[sid]?.receivers.removeAll { $0 == session }
        if received[session]?.isEmpty == true { received[session] = nil }
    }

    /// It no longer receives any; its client is not notified.
    mutating func unsubscribeFromAll(_ session: SessionID) {
        for sid in received[session] ?? [] { unsubscribe(session, from: sid) }
    }

    /// Members that subscribe to every data track receive it at once. In a room without a free number it is never sent; only a room into which publishers were
    /// moved can have so many.
    private mutating func add(_ sid: String, of publisher: SessionID, _ state: RoomState) {
        guard sidByNumber.count < Int(UInt16.max) else { return }
        repeat { lastNumber &+= 1 } while lastNumber == 0 || sidByNumber[lastNumber] != nil
        sidByNumber[lastNumber] = sid
        streams[sid] = Stream(publisher: publisher, number: lastNumber)
        for session in state.roster.sessions where state.roster[session]?.subscribesToDataTracks == true {
            subscribe(session, to: sid)
        }
    }

    /// Returns those who received one of them.
    private mutating func remove(_ tracks: [DataTrackInfo]) -> Set<SessionID> {
        var receivers: Set<SessionID> = []
        for track in tracks {
            guard let stream = streams.removeValue(forKey: track.sid) else { continue }
            sidByNumber[stream.number] = nil
            receivers.formUnion(stream.receivers)
            for session in stream.receivers { unsubscribe(session, from: track.sid) }
        }
        return receivers
    }

    private func notify(_ sessions: [SessionID], _ state: inout RoomState, _ turn: inout RoomTurn) {
        for session in sessions {
            state.roster.notify(session, .dataTracksReceived(received(by: session, state)), &turn)
        }
    }
}

extension DataTrackInfo {
    /// Refuses values that no data track may have, or not together with `others` of its publisher.
    fileprivate func check(beside others: [DataTrackInfo], atMost most: Int) throws(RoomError) {
        try TextRule.label.check(name, "the data track's name")
        try TextRule.label.check(schema?.name ?? "", "the schema's name")
        for case .custom(let word)? in [frameEncoding, schema?.encoding] {
            try TextRule.label.check(word, "an encoding's name")
        }
        guard handle > 0, !name.isEmpty else {
            throw RoomError(.invalidRequest, "a data track has a name, and a handle from 1")
        }
        guard !others.contains(where: { $0.handle == handle || $0.name == name }) else {
            throw RoomError(.invalidRequest, "the participant has a data track with this name or handle")
        }
        guard others.count < most else {
            throw RoomError(.limitExceeded, "the participant has \(most) data tracks, which is as many as it may have")
        }
    }
}

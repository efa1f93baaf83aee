import MediaControl

/// Data tracks: a member publishes frames on a data channel, and those who subscribe get them. Who may send messages may publish them; who may subscribe to media may receive them.
///
/// Two publishers may have the same number for different tracks, so each track has one of the room's, the same for all who receive it: a frame is written once.
struct DataTracks: Sendable {
    private var streams: [String: Stream] = [:]
    private var sidByNumber: [UInt16: String] = [:]
    private var lastNumber: UInt16 = 0

    private struct Stream: Sendable {
        let publisher: SessionID
        let number: UInt16
        /// In the order in which they subscribed.
        var receivers: [SessionID] = []
    }

    /// All that a member receives, in the order of their numbers.
    func received(by session: SessionID, _ state: RoomState) -> [ReceivedDataTrack] {
        streams.filter { $0.value.receivers.contains(session) }.compactMap { sid, stream in
            state.roster[stream.publisher].map { publisher in
                ReceivedDataTrack(
                    number: stream.number, track: sid, participant: publisher.info.sid,
                    identity: publisher.info.identity)
            }
        }.sorted { $0.number < $1.number }
    }

    /// Turns the number of a frame into the room's; returns who receives it. Throws `track_not_found` where its sender publishes no such track.
    func route(_ frame: inout RoomMessage, handle: UInt16, of sender: Member) throws(RoomError) -> [SessionID] {
        guard let track = sender.info.dataTracks.first(where: { $0.handle == handle }), let stream = streams[track.sid]
        else { throw RoomError(.trackNotFound, "the participant has no data track with this handle") }
        frame.dataTrack = stream.number
        return stream.receivers
    }
}

// MARK: - What members ask for

extension DataTracks {
    mutating func perform(
        _ request: DataTrackRequest, by member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        switch request {
        case .publish(let track): try publish(track, by: member, &state, &turn)
        case .unpublish(let handle): try unpublish(handle, of: member, &state, &turn)
        case .setSubscription(let track, let subscribes):
            try setSubscription(track, subscribes, of: member, &state, &turn)
        }
    }

    /// Refused where the member may not send messages, where it has a data track of this name or handle, or as many as it may have.
    private mutating func publish(
        _ announced: DataTrackInfo, by member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        try state.checkSendsMessages(member)
        guard !member.isHidden else {
            throw RoomError(.permissionDenied, "nobody would learn of a hidden participant's data track")
        }
        try announced.check(beside: member.info.dataTracks, atMost: state.context.limits.dataTracksPerParticipant)
        var track = announced
        track.sid = turn.sid("DTR_")
        state.roster.update(member.session) { $0.info.dataTracks.append(track) }
        state.roster.notify(member.session, .dataTrackPublished(track), &turn)
        // Others learn of a track before they learn its frames' number.
        state.participantChanged(member.session, &turn)
        let receivers = add(track.sid, of: member.session, state)
        tell(receivers, &state, &turn)
    }

    /// Throws `track_not_found`.
    private mutating func unpublish(
        _ handle: UInt16, of member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard let track = member.info.dataTracks.first(where: { $0.handle == handle }) else {
            throw RoomError(.trackNotFound, "the participant has no data track with this handle")
        }
        state.roster.update(member.session) { $0.info.dataTracks.removeAll { $0.sid == track.sid } }
        state.roster.notify(member.session, .dataTrackUnpublished(track), &turn)
        state.participantChanged(member.session, &turn)
        let receivers = remove(track.sid)
        tell(receivers, &state, &turn)
    }

    /// The member learns what it receives now, also where that is what it received before: its client waits for it.
    private mutating func setSubscription(
        _ sid: String, _ subscribes: Bool, of member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        if subscribes {
            guard member.permissions.canSubscribe else {
                throw RoomError(.permissionDenied, "the token does not permit subscribing (canSubscribe)")
            }
            guard let stream = streams[sid] else { throw RoomError(.trackNotFound, "there is no such data track") }
            if stream.publisher != member.session, !stream.receivers.contains(member.session) {
                streams[sid]?.receivers.append(member.session)
            }
        } else {
            streams[sid]?.receivers.removeAll { $0 == member.session }
        }
        tell([member.session], &state, &turn)
    }
}

// MARK: - Who comes and goes

extension DataTracks {
    /// A member has come, maybe from another room with its data tracks.
    mutating func memberArrived(_ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn) {
        if member.subscribesToDataTracks {
            for sid in streams.keys { streams[sid]?.receivers.append(member.session) }
        }
        var receivers: [SessionID] = []
        for track in member.info.dataTracks { receivers = add(track.sid, of: member.session, state) }
        tell(receivers, &state, &turn)
    }

    /// A member has gone from the roster.
    mutating func memberLeft(_ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn) {
        unsubscribeFromAll(member.session)
        let receivers = Set(member.info.dataTracks.flatMap { remove($0.sid) })
        tell(state.roster.sessions.filter(receivers.contains), &state, &turn)
    }

    /// Ends the data tracks that a member may not publish any more, and what it may not receive.
    mutating func endWhatIsNotPermitted(of session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let permissions = state.roster[session]?.permissions else { return }
        if !permissions.canPublishData || !state.policy.allowsMessages {
            while let member = state.roster[session], let track = member.info.dataTracks.last {
                guard (try? unpublish(track.handle, of: member, &state, &turn)) != nil else { return }
            }
        }
        guard !permissions.canSubscribe, !received(by: session, state).isEmpty else { return }
        unsubscribeFromAll(session)
        tell([session], &state, &turn)
    }

    private mutating func unsubscribeFromAll(_ session: SessionID) {
        for sid in streams.keys { streams[sid]?.receivers.removeAll { $0 == session } }
    }

    /// Returns those who receive it at once: all who subscribe to every data track.
    private mutating func add(_ sid: String, of publisher: SessionID, _ state: RoomState) -> [SessionID] {
        repeat { lastNumber &+= 1 } while lastNumber == 0 || sidByNumber[lastNumber] != nil
        sidByNumber[lastNumber] = sid
        let receivers = state.roster.sessions.filter {
            $0 != publisher && state.roster[$0]?.subscribesToDataTracks == true
        }
        streams[sid] = Stream(publisher: publisher, number: lastNumber, receivers: receivers)
        return receivers
    }

    /// Returns those who received it.
    private mutating func remove(_ sid: String) -> [SessionID] {
        guard let stream = streams.removeValue(forKey: sid) else { return [] }
        sidByNumber[stream.number] = nil
        return stream.receivers
    }

    private func tell(_ sessions: [SessionID], _ state: inout RoomState, _ turn: inout RoomTurn) {
        for session in sessions {
            state.roster.notify(session, .dataTracksReceived(received(by: session, state)), &turn)
        }
    }
}

extension DataTrackInfo {
    /// Refuses what no data track may be, or not beside `others` of its publisher.
    fileprivate func check(beside others: [DataTrackInfo], atMost most: Int) throws(RoomError) {
        try TextRule.label.check(name, "the data track's name")
        guard (frameEncoding?.count ?? 0) + (schema?.count ?? 0) <= Self.maximumWordBytes else {
            throw RoomError(.tooLarge, "frame encoding and schema are longer than \(Self.maximumWordBytes) bytes")
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

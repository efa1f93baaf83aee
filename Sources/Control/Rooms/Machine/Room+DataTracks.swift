import MediaControl

// Data tracks: a member publishes frames on a data channel, and those who subscribe get them. Who may send messages may publish them; who may subscribe to media may receive them.

extension Room {
    /// Refused where the member may not send messages, where it has a data track of this name or handle, or as many as it may have.
    mutating func publish(_ track: DataTrackInfo, by member: Member, _ turn: inout RoomTurn) throws(RoomError) {
        try checkSendsMessages(member)
        guard !member.isHidden else {
            throw RoomError(.permissionDenied, "nobody would learn of a hidden participant's data track")
        }
        try TextRule.label.check(track.name, "the data track's name")
        let words = (track.frameEncoding?.count ?? 0) + (track.schema?.count ?? 0)
        guard words <= DataTrackInfo.maximumWordBytes else {
            throw RoomError(
                .tooLarge, "frame encoding and schema are longer than \(DataTrackInfo.maximumWordBytes) bytes")
        }
        guard track.handle > 0, !track.name.isEmpty else {
            throw RoomError(.invalidRequest, "a data track has a name, and a handle from 1")
        }
        guard !member.info.dataTracks.contains(where: { $0.handle == track.handle || $0.name == track.name }) else {
            throw RoomError(.invalidRequest, "the participant has a data track with this name or handle")
        }
        let most = state.context.limits.dataTracksPerParticipant
        guard member.info.dataTracks.count < most else {
            throw RoomError(.limitExceeded, "the participant has \(most) data tracks, which is as many as it may have")
        }
        var track = track
        track.sid = turn.sid("DTR_")
        state.roster.update(member.session) { $0.info.dataTracks.append(track) }
        dataTracks.add(track.sid, of: member.session, state.roster)
        state.roster.notify(member.session, .dataTrackPublished(track), &turn)
        // Others learn of a track before its frames' number.
        state.participantChanged(member.session, &turn)
        for session in dataTracks.route(handle: track.handle, of: try state.member(member.session))?.receivers ?? [] {
            tellDataTracks(to: session, &turn)
        }
    }

    /// Throws `track_not_found`.
    mutating func unpublishDataTrack(
        _ handle: UInt16, of member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard let track = member.info.dataTracks.first(where: { $0.handle == handle }) else {
            throw RoomError(.trackNotFound, "the participant has no data track with this handle")
        }
        state.roster.update(member.session) { $0.info.dataTracks.removeAll { $0.sid == track.sid } }
        state.roster.notify(member.session, .dataTrackUnpublished(track), &turn)
        state.participantChanged(member.session, &turn)
        for session in dataTracks.remove(track.sid) { tellDataTracks(to: session, &turn) }
    }

    /// The member learns what it receives now, also where that is what it received before: its client waits for it.
    mutating func setDataSubscription(
        _ track: String, _ subscribes: Bool, of member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard subscribes else {
            dataTracks.unsubscribe(member.session, from: track)
            return tellDataTracks(to: member.session, &turn)
        }
        guard member.permissions.canSubscribe else {
            throw RoomError(.permissionDenied, "the token does not permit subscribing (canSubscribe)")
        }
        try dataTracks.subscribe(member.session, to: track)
        tellDataTracks(to: member.session, &turn)
    }

    /// A member has come, maybe from another room with its data tracks.
    mutating func dataTracksFollow(_ member: Member, _ turn: inout RoomTurn) {
        if member.subscribesToDataTracks { dataTracks.subscribeToAll(member.session) }
        guard !member.info.dataTracks.isEmpty else { return }
        var receivers: [SessionID] = []
        for track in member.info.dataTracks {
            dataTracks.add(track.sid, of: member.session, state.roster)
            receivers = dataTracks.route(handle: track.handle, of: member)?.receivers ?? []
        }
        for session in receivers { tellDataTracks(to: session, &turn) }
    }

    /// A member has gone from the roster.
    mutating func forgetDataTracks(of member: Member, _ turn: inout RoomTurn) {
        dataTracks.unsubscribeFromAll(member.session)
        let receivers = Set(member.info.dataTracks.flatMap { dataTracks.remove($0.sid) })
        for session in state.roster.sessions where receivers.contains(session) { tellDataTracks(to: session, &turn) }
    }

    /// Ends the data tracks that a member may not publish any more, and those that it may not receive.
    mutating func endDataTracks(of member: Member, _ turn: inout RoomTurn) {
        if !member.permissions.canPublishData || !policy.allowsMessages {
            for track in member.info.dataTracks {
                guard let now = state.roster[member.session] else { return }
                try? unpublishDataTrack(track.handle, of: now, &turn)
            }
        }
        guard !member.permissions.canSubscribe, !receivedDataTracks(by: member.session).isEmpty else { return }
        dataTracks.unsubscribeFromAll(member.session)
        tellDataTracks(to: member.session, &turn)
    }

    /// What a member receives, for its snapshot.
    func receivedDataTracks(by session: SessionID) -> [ReceivedDataTrack] {
        dataTracks.received(by: session, state.roster)
    }

    private mutating func tellDataTracks(to session: SessionID, _ turn: inout RoomTurn) {
        state.roster.notify(session, .dataTracksReceived(receivedDataTracks(by: session)), &turn)
    }
}

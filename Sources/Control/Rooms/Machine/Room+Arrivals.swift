import AccessTokens
import MediaControl
import Primitives
import SDP

// Participants that arrive other than by a client's join alone: with an offer, from another room, and from a file.

// MARK: - WHIP and WHEP

extension Room {
    /// Admits a participant that offers `connection`, the only one of its stay, with the join. If the offer is refused, the join has no effect: nobody is
    /// notified, and an older stay of the identity, which the join has ended, continues.
    public mutating func join(
        _ request: JoinRequest, offer sdp: String, connection: String, follow: FollowTarget?, turn: inout RoomTurn
    ) throws(RoomError) -> (session: SessionID, answer: ConnectionAnswer) {
        let (occupancyBefore, before) = (occupancy, turn)
        let isReplacing = request.claims.identity.map { !state.roster.sessions(identity: $0).isEmpty } ?? false
        // A stay that has ended cannot be restored: that needs a copy of all members, which only the few joins that end a stay make.
        let former = isReplacing ? self : nil
        let session = try join(request, isSignalled: false, follow: follow, turn: &turn)
        do throws(RoomError) {
            return (session, try offer(session, connection: connection, sdp: sdp, mustBeUsed: true, turn: &turn))
        } catch {
            if let former {
                self = former
            } else {
                withdrawNewcomer(session, since: before.effects.count, &turn)
                occupancy = occupancyBefore
            }
            turn = before
            throw error
        }
    }

    /// Removes a newcomer of this step, which has only its place on the roster and its sections. The events that the step has made since
    /// this many effects are not sent.
    private mutating func withdrawNewcomer(_ session: SessionID, since count: Int, _ turn: inout RoomTurn) {
        remove(session, reason: .left, turn: &turn)
        for case .notify(let other, _) in turn.effects.dropFirst(count) { state.roster.withdrawEvent(of: other) }
    }
}

extension Member {
    /// Refuses the offer of a WHIP session that would publish nothing, or of a WHEP session that could play nothing.
    func checkUse(of sections: [NegotiatedSection]) throws(RoomError) {
        switch profile {
        case .publishOnly where !sections.contains { $0.receiving != nil }:
            throw permissions.canPublish && permissions.publishSources == nil
                ? RoomError(.noCommonCodec, "no track in the offer can be published in this room")
                : RoomError(.permissionDenied, "the token permits none of the tracks in the offer")
        case .viewer where !sections.contains { $0.sending != nil }:
            throw RoomError(.noCommonCodec, "no section of the offer can receive media of this room")
        default: return
        }
    }
}

// MARK: - Moves

// A move is two steps, one in each room, which the host of the rooms takes together. A connection is on one worker: it continues if both rooms are on that
// worker, and the client can be notified that it is in another room.
extension Room {
    /// Removes a member, named by sid or identity, that moves to another room. Its peers and tracks stay with the worker, unless the other room is on another
    /// one; all subscriptions to its tracks, and its own, end.
    ///
    /// Throws `not_routed` in a room whose media the server does not carry; `invalid_request` for a WHEP session, which
    /// follows somebody here, and for a playback; `different_worker` if its client would have to join anew.
    public mutating func moveOut(
        _ name: String, toOtherWorker: Bool = false, turn: inout RoomTurn
    ) throws(RoomError) -> MovingMember {
        let session = try state.session(named: name)
        let options = try state.member(session).options
        guard policy.topology == .routed else { throw MovingMember.cannotMove }
        guard options.follow == nil else {
            throw RoomError(
                .invalidRequest,
                "a WHEP session, which follows somebody, cannot be moved: its client joins the other room")
        }
        guard try state.member(session).playback == nil else {
            throw RoomError(
                .invalidRequest, "a playback cannot be moved: end it, and begin another in the other room")
        }
        guard try !state.member(session).isAwaited else {
            throw RoomError(
                .differentWorker,
                "the participant was just moved here without its connections, and its client has not joined yet: move it when it has"
            )
        }
        guard !toOtherWorker || options.recovery != nil else {
            throw RoomError(
                .differentWorker,
                "the rooms are on different media workers, and the participant's client (WHIP or WHEP) cannot make new connections: create the other room with `beside` and this room's name, so that it shares the worker; into this one the participant must join itself"
            )
        }
        let publishes = !state.routing.tracks(of: session).isEmpty
        let losesConnections = toOtherWorker || !options.understandsMoves
        distribution.memberLeft(session)
        // Otherwise it would be subscribed anew to waiting tracks.
        state.roster.update(session) { $0.stopAsking() }
        var lostConnections: [String] = []
        if losesConnections {
            state.roster.update(session) { $0.rememberConnections() }
            lostConnections = endConnections(of: session, &turn)
        }
        // In the other room it begins with the first codec, like a track that is published anew.
        for id in state.routing.tracks(of: session) { state.endRegression(of: id, &turn) }
        var tracks = state.routing.encodings(of: session).compactMap { state.routing[$0] }
        // When its subscribers here end, so does the demand for the backup codec, and its publisher is notified.
        for index in tracks.indices { tracks[index].wantsBackup = false }
        for track in tracks where track.main == nil {
            if let stream = recordings.stream(of: track.id) { turn.media(.endRecording(stream)) }
            withdraw(track, notifiesPublisher: false, &turn)
            if let backup = track.backup { state.routing.remove(backup) }
        }
        for subscription in state.routing.subscriptions(of: session) {
            distribution.end(subscription, notifies: false, &state, &turn)
        }
        var moving = MovingMember(
            member: try state.member(session), tracks: tracks, losesConnections: losesConnections,
            lostConnections: lostConnections, publishes: publishes, policy: policy)
        moving.member.options.autoSubscribe = options.autoSubscribe
        moving.member.leave(self.name)
        depart(moving.member, .moved, keepsConnections: !losesConnections, &turn)
        distribution.follow(&state, &turn)
        makeOffers(&turn)
        return moving
    }

    /// Ends all connections of a member and the tracks that it publishes; returns the names of the connections.
    @discardableResult
    mutating func endConnections(of session: SessionID, _ turn: inout RoomTurn) -> [String] {
        let names = (state.roster[session]?.connections ?? []).map(\.id)
        for name in names { endConnection(session, name, commandsWorker: true, &turn) }
        for track in state.routing.tracks(of: session) { unpublish(track, &turn) }
        return names
    }

    /// Adds a member that comes from another room. Everything that refuses a join refuses it, except what an operator overrides: the lock and
    /// the waiting room. Tracks that this room's rules do not allow end; codecs stay until the next negotiation, as after any change of rules.
    public mutating func moveIn(_ moving: MovingMember, turn: inout RoomTurn) throws(RoomError) {
        guard !hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
        try moving.check(state)
        let info = moving.info
        // Also if it comes back after a lost connection.
        letIn(info.identity)
        let older = policy.duplicateIdentity == .replace ? state.roster.sessions(identity: info.identity) : []
        for session in older { remove(session, reason: .duplicateIdentity, turn: &turn) }
        var member = moving.member
        let session = member.session
        member.enter(name, losesConnections: moving.losesConnections, turn)
        arrive(member, &turn)
        for connection in member.connections where connection.isOpened {
            turn.media(.movePeer(connection.peer, to: id))
        }
        for track in moving.tracks {
            state.routing.insert(track)
            guard track.main == nil else { continue }
            announcePublished(track.info, of: session, notifiesPublisher: false, &turn)
            if track.info.kind == .audio {
                turn.media(.setTrackAlwaysForwarded(track.id, state.isAlwaysHeard(info.identity)))
            }
        }
        distribution.subscribeToAll(session, quietly: true, &state, &turn)
        var snapshot = try snapshot(session)
        snapshot.sequence += 1
        snapshot.isAwaited = member.isAwaited
        state.roster.notify(session, .moved(snapshot), &turn)
        state.announceForbiddenTracks(to: session, &turn)
        state.announceSpeakers(to: session, &turn)
        for connection in moving.lostConnections {
            state.roster.notify(
                session,
                .connectionChanged(connection: connection, state: .closed, reason: LeaveReason.moved.rawValue), &turn)
        }
        endWhatIsNotPermitted(of: session, &turn)
        applyPolicy(to: session, insteadOf: moving.policy, &turn)
        for track in moving.tracks where state.routing[track.id] != nil && track.main == nil {
            distribution.offer(track.id, &state, &turn)
            trackMayBeRecorded(track.id, &turn)
        }
        state.outdated.insert(session)
        makeOffers(&turn)
    }
}

// MARK: - Playbacks

// A file is a participant without a client. It publishes under the room's rules, and its packets come from this process.

extension Room {
    /// The maximum number of playbacks in one room at a time: a wall of screens.
    private static let maximumPlaybacks = 16

    /// Its only connection, which has no other side.
    private static let playbackConnection = "playback"

    /// Admits a file as a participant with its tracks. Refused, before anything has changed, if the room's rules do not permit it.
    public mutating func startPlayback(
        _ request: PlaybackRequest, turn: inout RoomTurn
    ) throws(RoomError) -> (session: SessionID, info: PlaybackInfo) {
        guard state.roster.all.count(where: { $0.playback != nil }) < Self.maximumPlaybacks else {
            throw RoomError(.limitExceeded, "the room has as many playbacks as it may have")
        }
        try request.check(in: state)
        let sid = turn.sid("PB_")
        let (former, before) = (self, turn)
        do throws(RoomError) {
            // An operator admitted it by starting it.
            letIn(request.identity)
            let session = try join(request.joinRequest(sid), isSignalled: false, turn: &turn)
            let connection = try openPlaybackConnection(session, &turn)
            let info = PlaybackInfo(
                sid: sid, participant: try state.member(session).info.sid, identity: request.identity,
                peer: connection.peer,
                tracks: [], startedAt: turn.wallClock)
            state.roster.update(session) { $0.playback = ActivePlayback(info: info) }
            turn.log(.playback(PlaybackEvent(.started, info)))
            let tracks = publish(request, of: session, &turn)
            guard tracks.count == request.formats.count else {
                throw RoomError(.permissionDenied, "the room's rules do not permit a track of the file")
            }
            var complete = info
            complete.tracks = tracks
            makeOffers(&turn)
            return (session, complete)
        } catch {
            (self, turn) = (former, before)
            throw error
        }
    }

    /// Whether the room has this playback.
    public func hasPlayback(_ sid: String) -> Bool { session(ofPlayback: sid) != nil }

    private func session(ofPlayback sid: String) -> SessionID? {
        state.roster.all.first { $0.playback?.info.sid == sid }?.session
    }

    /// Ends a playback: its participant leaves.
    public mutating func endPlayback(_ sid: String, _ end: PlaybackEnd, turn: inout RoomTurn) throws(RoomError) {
        guard let session = session(ofPlayback: sid) else {
            throw RoomError(.playbackNotFound, "the room has no such playback")
        }
        state.roster.update(session) { $0.playback?.end = end }
        leave(session, turn: &turn)
    }

    /// The session has ended: if it was a playback, the player is notified and it is logged.
    mutating func forgetPlayback(of session: SessionID, reason: LeaveReason, _ turn: inout RoomTurn) {
        guard let playback = state.roster[session]?.playback else { return }
        turn.effects.append(.playback(.ended(playback: playback.info.sid)))
        turn.log(.playback(PlaybackEvent(.ended, playback.info, reason: playback.end?.rawValue ?? reason.rawValue)))
    }

    /// A connection that is up from the beginning.
    private mutating func openPlaybackConnection(
        _ session: SessionID, _ turn: inout RoomTurn
    ) throws(RoomError) -> Connection {
        var connection = try makeConnection(Self.playbackConnection, for: try state.member(session), &turn)
        connection.openForPlayer(in: id, &turn)
        state.roster.store(connection, of: session)
        state.connected(session, &turn)
        return connection
    }

    private mutating func publish(
        _ request: PlaybackRequest, of session: SessionID, _ turn: inout RoomTurn
    ) -> [PlaybackInfo.Track] {
        var tracks: [PlaybackInfo.Track] = []
        for (index, format) in request.formats.enumerated() {
            let kind = format.codec.kind, mid = String(index)
            let ssrc = turn.ssrc { ssrc in tracks.contains { $0.ssrc == ssrc } }
            let announcement = format.announcement(from: request.source(of: kind))
            state.roster.update(session) { member in
                _ = try? member.announcements.add(announcement, most: request.formats.count) { turn.sid("TR_") }
            }
            let section = NegotiatedSection(receivingOn: mid, index: index, kind: kind.sectionKind)
            receive(format.sending(ssrc), section: section, on: Self.playbackConnection, of: session, &turn)
            let published = state.routing.tracks(of: session).compactMap { state.routing[$0] }
            guard let track = published.first(where: { $0.info.mid == mid }) else { continue }
            // Files have no audio levels, by which the loudest are chosen.
            if kind == .audio { turn.media(.setTrackAlwaysForwarded(track.id, true)) }
            tracks.append(
                PlaybackInfo.Track(
                    sid: track.info.sid, kind: kind, codec: format.codec, ssrc: ssrc, payloadType: format.payloadType)
            )
        }
        return tracks
    }
}

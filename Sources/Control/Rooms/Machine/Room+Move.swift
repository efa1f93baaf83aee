import MediaControl
import Primitives

/// A member on its way from one room to another, with what goes on there: its connections and its tracks.
public struct MovingMember: Sendable {
    /// As it was in the room that it leaves, without subscriptions.
    var member: Member
    let tracks: [RoomTrack]
    /// The rules of the room that it leaves.
    let policy: RoomPolicy

    public var session: SessionID { member.session }
    /// As it was shown in the room that it leaves, without tracks.
    public var info: ParticipantInfo { member.info }
    /// The numbers that go on, which were made by the first room that the member was in.
    public var numbers: [UInt64] { member.connections.map(\.peer.rawValue) + tracks.map(\.id.rawValue) }
}

// A move is two steps, one of each room, which whoever hosts the rooms takes together: the rooms must be on one worker, because a connection is on one.

extension Room {
    /// Takes a member out, named by sid or identity. Its peers and its tracks stay with the worker; all subscriptions to them, and its own, end.
    ///
    /// Throws `not_routed` in a room whose media the server does not carry, `invalid_request` for a WHEP session, which
    /// follows somebody here, and for a playback.
    public mutating func moveOut(_ name: String, turn: inout RoomTurn) throws(RoomError) -> MovingMember {
        let session = try session(named: name)
        let wish = try member(session).options.autoSubscribe
        guard policy.topology == .routed else { throw Self.cannotMove }
        guard try member(session).options.follow == nil else {
            throw RoomError(
                .invalidRequest,
                "a WHEP session, which follows somebody, cannot be moved: its client joins the other room")
        }
        guard !playbacks.has(session) else {
            throw RoomError(
                .invalidRequest, "a playback cannot be moved: end it, and begin another in the other room")
        }
        let tracks = routing.tracks(of: session).compactMap { routing[$0] }
        waitingTracks.remove(session)
        // Or it would be subscribed anew to what waits.
        roster.update(session) { $0.options.autoSubscribe = false }
        for track in tracks {
            if let stream = recordings.stream(of: track.id) { turn.media(.endRecording(stream)) }
            withdraw(track, tellsPublisher: false, &turn)
        }
        for subscription in routing.subscriptions(of: session) { endSubscription(subscription, notifies: false, &turn) }
        var moving = MovingMember(member: try member(session), tracks: tracks, policy: policy)
        moving.member.options.autoSubscribe = wish
        moving.member.tokenRoom = moving.member.tokenRoom ?? self.name
        depart(moving.member, .moved, &turn)
        follow(&turn)
        makeOffers(&turn)
        return moving
    }

    /// Takes in a member that comes from another room of the same worker. What refuses a join refuses it, but for what an operator may pass: the lock and
    /// the waiting room. Tracks that this room's rules do not allow end; codecs hold until the next negotiation, as after any change of rules.
    public mutating func moveIn(_ moving: MovingMember, turn: inout RoomTurn) throws(RoomError) {
        try checkMove(moving)
        let info = moving.info
        if policy.duplicateIdentity == .replace, let older = roster.session(identity: info.identity) {
            remove(older, reason: .duplicateIdentity, turn: &turn)
        }
        var member = moving.member
        let session = member.session
        member.joined = turn.now
        member.lastSign = turn.now
        member.info.joinedAt = turn.wallClock
        member.unwanted = []
        for index in member.connections.indices { member.connections[index].requestedSections = nil }
        // Whoever was here before, and is moved back, shows the room's own token.
        if member.tokenRoom == name { member.tokenRoom = nil }
        arrive(member, &turn)
        for connection in member.connections where connection.isOpened {
            turn.media(.movePeer(connection.peer, to: id))
        }
        for track in moving.tracks {
            routing.insert(track)
            tellPublished(track.info, of: session, tellsPublisher: false, &turn)
            if track.info.kind == .audio {
                turn.media(.setTrackAlwaysForwarded(track.id, isAlwaysHeard(info.identity)))
            }
        }
        subscribeToAll(session, quietly: true, &turn)
        var snapshot = try snapshot(session)
        snapshot.sequence += 1
        roster.notify(session, .moved(snapshot), &turn)
        endWhatIsNotPermitted(of: session, &turn)
        applyPolicy(to: session, insteadOf: moving.policy, &turn)
        for track in moving.tracks where routing[track.id] != nil {
            offerToSubscribers(track.id, &turn)
            trackMayBeRecorded(track.id, &turn)
        }
        outdated.insert(session)
        makeOffers(&turn)
    }

    private func checkMove(_ moving: MovingMember) throws(RoomError) {
        guard !occupancy.hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
        guard policy.topology == .routed else { throw Self.cannotMove }
        guard moving.info.encrypts || !policy.requiresEncryption else {
            throw RoomError(
                .encryptionRequired, "the room admits only participants that encrypt their media end to end")
        }
        let identity = moving.info.identity
        guard policy.duplicateIdentity != .refuse || roster.session(identity: identity) == nil else {
            throw RoomError(.identityTaken, "a participant with this identity is in the room")
        }
        try checkCapacity(
            identity: identity, profile: moving.info.profile, hidden: moving.info.permissions.hidden)
        if let most = policy.maxPublishers, !moving.tracks.isEmpty, routing.publisherCount >= most {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
    }

    private static let cannotMove = RoomError(
        .notRouted, "a peer-to-peer room has no media on the server that could move")
}

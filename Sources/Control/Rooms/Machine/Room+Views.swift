public import Primitives

// What others see: values made on demand from the model.

extension Room {
    /// The room as lists show it.
    public var info: RoomInfo {
        var info = RoomInfo(
            sid: sid, name: name, metadata: metadata, topology: policy.topology,
            maxParticipants: policy.maxParticipants,
            createdAt: createdAt)
        for member in members.values where !member.isHidden {
            info.participants += 1
            if !member.tracks.isEmpty { info.publishers += 1 }
        }
        return info
    }

    /// A member with its tracks.
    public func participant(_ session: SessionID) -> ParticipantInfo? {
        members[session].map(info(of:))
    }

    func info(of member: Member) -> ParticipantInfo {
        var info = member.info
        info.tracks = member.tracks.compactMap { tracks[$0]?.info }
        return info
    }

    /// Everybody whom `session` may know of, in the order of joining.
    func others(than session: SessionID) -> [ParticipantInfo] {
        order.compactMap { other in
            guard other != session, let member = members[other], !member.isHidden else { return nil }
            return info(of: member)
        }
    }

    /// The session whose sid or identity is `name`.
    public func find(_ name: String) -> SessionID? { sessionBySID[name] ?? sessionByIdentity[name] }

    /// A complete picture for one session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        let member = try member(session)
        let dominantSID = dominant.flatMap { members[$0] }.flatMap { $0.isHidden ? nil : $0.info.sid }
        return SessionSnapshot(
            room: info, participant: info(of: member),
            others: member.options.hasRoster ? others(than: session) : [],
            subscriptions: member.subscriptions.compactMap { subscriptions[$0].map(info(of:)) },
            dominantSpeaker: member.options.hasRoster ? dominantSID : nil, sequence: member.sequence)
    }

    func info(of subscription: Subscription) -> SubscriptionInfo {
        let track = subscription.track.flatMap { tracks[$0] }
        var info = SubscriptionInfo(
            sid: subscription.sid, track: track?.info.sid, publisher: track?.info.participant,
            subscriber: members[subscription.member]?.info.sid ?? "", kind: subscription.kind,
            connection: subscription.connection, mid: subscription.mid, paused: isPaused(subscription),
            preference: subscription.preference, state: subscription.state)
        info.display = subscription.display
        return info
    }

    /// The subscriptions of one session, oldest first.
    public func subscriptions(of session: SessionID) -> [SubscriptionInfo] {
        (members[session]?.subscriptions ?? []).compactMap { subscriptions[$0].map(info(of:)) }
    }

    /// Names and states of one session's connections, oldest first.
    public func connections(of session: SessionID) -> [(id: String, peer: PeerID, state: ConnectionState)] {
        (members[session]?.connections ?? []).map { ($0.id, $0.peer, $0.state) }
    }

    /// Who owns a peer.
    public func owner(of peer: PeerID) -> (session: SessionID, connection: String)? {
        peers[peer].map { ($0.session, $0.connection) }
    }

    /// A track and whose it is.
    public func published(_ track: TrackID) -> (session: SessionID, info: TrackInfo)? {
        tracks[track].map { ($0.publisher, $0.info) }
    }

    /// A subscription and whose it is.
    public func subscribed(_ subscription: SubscriptionID) -> (session: SessionID, info: SubscriptionInfo)? {
        subscriptions[subscription].map { ($0.member, info(of: $0)) }
    }

    /// How many there are, for metrics.
    public var counts: (participants: Int, publishers: Int, tracks: Int, subscriptions: Int, connections: Int) {
        (members.count, members.values.count { !$0.tracks.isEmpty }, tracks.count, subscriptions.count, peers.count)
    }

    /// Whether anybody is told about others.
    public var hasRosterReaders: Bool { members.values.contains { $0.options.hasRoster } }

    /// Sessions that wait to be resumed.
    public var detachedCount: Int { members.values.count { $0.detachedSince != nil } }
}

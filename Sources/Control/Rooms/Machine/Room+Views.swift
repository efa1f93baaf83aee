public import Primitives

// What others see: values made on demand from the model.

extension Room {
    /// The room as lists show it.
    public var info: RoomInfo {
        var info = RoomInfo(
            sid: sid, name: name, metadata: metadata, topology: policy.topology,
            maxParticipants: policy.maxParticipants,
            createdAt: createdAt)
        info.lock = lock
        info.recordings = recordingsInProgress
        for member in roster.all where !member.isHidden {
            info.participants += 1
            if routing.publishes(member.session) { info.publishers += 1 }
        }
        return info
    }

    /// Who dominates, as others may know; its sid.
    var dominantSpeaker: String? { dominant.current.flatMap { roster[$0] }.flatMap { $0.isHidden ? nil : $0.info.sid } }

    /// A member with its tracks.
    public func participant(_ session: SessionID) -> ParticipantInfo? {
        roster[session].map(info(of:))
    }

    func info(of member: Member) -> ParticipantInfo {
        var info = member.info
        info.tracks = routing.tracks(of: member.session).compactMap { routing[$0]?.info }
        return info
    }

    /// Everybody whom `session` may know of, in the order of joining.
    func others(than session: SessionID) -> [ParticipantInfo] {
        roster.sessions.compactMap { other in
            guard other != session, let member = roster[other], !member.isHidden else { return nil }
            return info(of: member)
        }
    }

    /// The session whose sid or identity is `name`.
    public func find(_ name: String) -> SessionID? { roster.session(sid: name) ?? roster.session(identity: name) }

    /// A complete picture for one session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        let member = try member(session)
        var snapshot = SessionSnapshot(
            room: info, participant: info(of: member),
            others: member.options.hasRoster ? others(than: session) : [],
            subscriptions: routing.subscriptions(of: member.session).compactMap { routing[$0].map(info(of:)) },
            dominantSpeaker: member.options.hasRoster ? dominantSpeaker : nil, sequence: member.sequence)
        if member.permissions.roomAdmin { snapshot.guests = guests }
        snapshot.drain = drain
        return snapshot
    }

    func info(of subscription: RoomSubscription) -> SubscriptionInfo {
        let track = routing.track(of: subscription)
        var info = SubscriptionInfo(
            sid: subscription.sid, track: track?.info.sid, publisher: track?.info.participant,
            subscriber: roster[subscription.member]?.info.sid ?? "", kind: subscription.kind,
            connection: subscription.connection, mid: subscription.mid, paused: isPaused(subscription),
            preference: subscription.preference, state: subscription.state)
        info.display = subscription.display
        info.freezes = subscription.freezes.total
        return info
    }

    /// The subscriptions of one session, oldest first.
    public func subscriptions(of session: SessionID) -> [SubscriptionInfo] {
        routing.subscriptions(of: session).compactMap { routing[$0].map(info(of:)) }
    }

    /// Names and states of one session's connections, oldest first.
    public func connections(of session: SessionID) -> [(id: String, peer: PeerID, state: ConnectionState)] {
        (roster[session]?.connections ?? []).map { ($0.id, $0.peer, $0.state) }
    }

    /// Who owns a peer.
    public func owner(of peer: PeerID) -> (session: SessionID, connection: String)? {
        roster.owner(of: peer).map { ($0.session, $0.connection) }
    }

    /// A track and whose it is.
    public func published(_ track: TrackID) -> (session: SessionID, info: TrackInfo)? {
        routing[track].map { ($0.publisher, $0.info) }
    }

    /// A subscription and whose it is.
    public func subscribed(_ subscription: SubscriptionID) -> (session: SessionID, info: SubscriptionInfo)? {
        routing[subscription].map { ($0.member, info(of: $0)) }
    }

    /// How many there are, for metrics.
    public var counts: (participants: Int, publishers: Int, tracks: Int, subscriptions: Int, connections: Int) {
        (
            roster.count, routing.publisherCount, routing.trackCount, routing.subscriptionCount,
            roster.connectionCount
        )
    }

    /// Sessions that wait to be resumed.
    public var detachedCount: Int { roster.all.count { $0.detachedSince != nil } }
}

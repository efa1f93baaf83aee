public import AccessTokens
import Primitives

extension Room {
    /// Lets somebody in. A session of the same identity ends first. `isSignalled`: there is a socket on which
    /// events can be told and which must show signs of life.
    public mutating func join(
        _ request: JoinRequest, isSignalled: Bool, follow: FollowTarget? = nil, turn: inout RoomTurn
    ) throws(RoomError) -> SessionID {
        let info = try admit(request, turn: &turn)
        let promised = promisedConnections(request.profile, isSignalled: isSignalled)
        if let older = sessionByIdentity[info.identity].flatMap({ members[$0] }) {
            // What is freed with the older session can be had again.
            try turn.takeConnections(max(0, promised - max(older.promisedConnections, older.connections.count)))
        } else {
            try turn.takeConnections(promised)
        }
        if let older = sessionByIdentity[info.identity] { remove(older, reason: .duplicateIdentity, turn: &turn) }
        let session = turn.sessionID()
        let isPublishOnly = request.profile == .publishOnly
        let options = MemberOptions(
            autoSubscribe: request.autoSubscribe && request.profile == .full
                || request.profile == .viewer && isSignalled,
            audioOnly: request.audioOnly || policy.audioOnly,
            hasRoster: isSignalled && (request.wantsRoster ?? !isPublishOnly), wantsSpeakers: request.wantsSpeakers,
            receivingConnection: request.receivingConnection,
            grantedBandwidth: BandwidthProfile(request.claims.video), bandwidth: request.bandwidth,
            isSignalled: isSignalled, follow: follow)
        members[session] = Member(
            session: session, apiKey: request.claims.apiKey, info: info, options: options,
            promisedConnections: promised, lastSign: turn.now)
        reservedConnections += promised
        order.append(session)
        sessionByIdentity[info.identity] = session
        sessionBySID[info.sid] = session
        emptySince = nil
        wasOccupied = true
        mayHaveChanged = true
        turn.log(.participantJoined(participant: info.sid, identity: info.identity))
        tellAbout(session, .participantJoined(info), includingSubject: false, &turn)
        subscribeToAll(session, quietly: true, &turn)
        return session
    }

    /// Refuses a resume by anybody but the bearer of a token that could have joined this session: another key's or identity's learns
    /// nothing of it. Grants take effect when somebody joins, so changed ones need a join.
    public func checkResume(_ session: SessionID, _ claims: AccessClaims) throws(RoomError) {
        guard let member = members[session], member.options.isSignalled, claims.identity == member.info.identity,
            claims.apiKey == member.apiKey
        else { throw RoomError(.sessionNotFound, "there is no such session") }
        try Self.checkJoins(claims)
        try RoomNames.checkMatch(granted: claims.video.room, asked: name)
        guard Permissions(claims.video) == member.permissions,
            BandwidthProfile(claims.video) == member.options.grantedBandwidth
        else { throw RoomError(.grantsChanged, "the grants differ from those of the token that joined; join again") }
    }

    private static func checkJoins(_ claims: AccessClaims) throws(RoomError) {
        guard claims.video.roomJoin else { throw RoomError(.permissionDenied, "the token does not permit joining") }
    }

    /// One to publish and one to receive; a WHIP or WHEP session has one, and what the server does not carry none.
    private func promisedConnections(_ profile: ParticipantProfile, isSignalled: Bool) -> Int {
        guard policy.topology == .routed else { return 0 }
        return profile == .full && isSignalled ? 2 : 1
    }

    /// What has to be told after a snapshot was taken of what an intent did: the server's own offers.
    public mutating func settle(turn: inout RoomTurn) {
        makeOffers(&turn)
    }

    /// Whether the newcomer may come in, and how it will be shown.
    private func admit(_ request: JoinRequest, turn: inout RoomTurn) throws(RoomError) -> ParticipantInfo {
        guard !isEnded else { throw RoomError(.roomClosed, "the room is closing") }
        let claims = request.claims
        try Self.checkJoins(claims)
        guard let identity = claims.identity, !identity.isEmpty else {
            throw RoomError(.identityRequired, "the token has no identity (`sub`)")
        }
        let name = claims.name ?? request.name ?? ""
        let metadata = claims.metadata ?? request.metadata ?? ""
        try TextRule.identifier.check(identity, "the identity")
        try TextRule.label.check(name, "the name")
        try TextRule.metadata.check(metadata, "the metadata")
        if let id = request.receivingConnection { try checkConnectionID(id) }
        let permissions = Permissions(claims.video)
        switch request.profile {
        case .publishOnly where !permissions.canPublish:
            throw RoomError(.permissionDenied, "the token does not permit publishing")
        case .viewer where !permissions.canSubscribe:
            throw RoomError(.permissionDenied, "the token does not permit subscribing")
        default: break
        }
        try checkCapacity(identity: identity, profile: request.profile, hidden: permissions.hidden)
        return ParticipantInfo(
            sid: turn.sid("PA_"), identity: identity, name: name, metadata: metadata, profile: request.profile,
            permissions: permissions, joinedAt: turn.wallClock)
    }

    /// Whoever is about to be replaced does not count.
    private func checkCapacity(identity: String, profile: ParticipantProfile, hidden: Bool) throws(RoomError) {
        let replaced = sessionByIdentity[identity]
        let present = members.values.filter { $0.session != replaced }
        guard present.count < context.limits.participants else { throw RoomError(.roomFull, "the room is full") }
        guard let most = policy.maxParticipants, counts(profile, hidden: hidden) else { return }
        let counted = present.count { counts($0.profile, hidden: $0.isHidden) }
        guard counted < most else { throw RoomError(.roomFull, "the room is full") }
    }

    private func counts(_ profile: ParticipantProfile, hidden: Bool) -> Bool {
        (policy.countsHidden || !hidden) && (policy.countsPublishOnly || profile != .publishOnly)
    }

    func checkConnectionID(_ id: String) throws(RoomError) {
        guard !id.isEmpty, id.utf8.count <= context.limits.connectionIDBytes else {
            throw RoomError(
                .invalidRequest, "the name of a connection must have 1 to \(context.limits.connectionIDBytes) bytes")
        }
    }
}

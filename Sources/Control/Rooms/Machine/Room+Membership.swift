public import AccessTokens
import MediaControl
public import Primitives

extension Room {
    /// Lets somebody in. A session of the same identity ends first. `isSignalled`: there is a socket on which
    /// events can be sent and which must show signs of life.
    public mutating func join(
        _ request: JoinRequest, isSignalled: Bool, follow: FollowTarget? = nil, turn: inout RoomTurn
    ) throws(RoomError) -> SessionID {
        let info = try admit(request, turn: &turn)
        let promised = promisedConnections(request.profile, isSignalled: isSignalled)
        if policy.duplicateIdentity != .allow,
            let older = roster.session(identity: info.identity).flatMap({ roster[$0] })
        {
            guard policy.duplicateIdentity == .replace else {
                throw RoomError(.identityTaken, "a participant with this identity is in the room")
            }
            // What is freed with the older session can be had again.
            try turn.takeConnections(max(0, promised - max(older.promisedConnections, older.connections.count)))
            remove(older.session, reason: .duplicateIdentity, turn: &turn)
        } else {
            try turn.takeConnections(promised)
        }
        let session = turn.sessionID()
        let isPublishOnly = request.profile == .publishOnly
        var options = MemberOptions(
            autoSubscribe: request.autoSubscribe && request.profile == .full
                || request.profile == .viewer && isSignalled,
            audioOnly: request.audioOnly,
            hasRoster: isSignalled && (request.wantsRoster ?? !isPublishOnly), wantsSpeakers: request.wantsSpeakers,
            receivingConnection: request.receivingConnection,
            grantedBandwidth: BandwidthProfile(request.claims.video), bandwidth: request.bandwidth,
            isSignalled: isSignalled, wantsMessages: request.wantsMessages ?? !isPublishOnly,
            dataProtocol: request.dataProtocol, follow: follow)
        options.offering = request.offering
        options.streamNames = request.streamNames
        arrive(
            Member(
                session: session, apiKey: request.claims.apiKey, granted: info.permissions,
                tokenID: request.claims.tokenID,
                tokenExpiry: turn.moment(ofSecond: request.claims.expiresAt), joined: turn.now, info: info,
                options: options, promisedConnections: promised,
                grantedRules: [SubscribeRule](request.claims.video), lastSign: turn.now), &turn)
        subscribeToAll(session, quietly: true, &turn)
        if request.offering == .serverAtOnce { outdated.insert(session) }
        return session
    }

    /// Refuses a resume by anybody but the bearer of a token that could have joined this session: another key's or identity's learns
    /// nothing of it. Grants take effect when somebody joins, so changed ones need a join.
    public func checkResume(_ session: SessionID, _ claims: AccessClaims) throws(RoomError) {
        guard let member = roster[session], member.options.isSignalled, claims.identity == member.info.identity,
            claims.apiKey == member.apiKey
        else { throw RoomError(.sessionNotFound, "there is no such session") }
        try Self.checkJoins(claims)
        try checkRoom(of: claims, member)
        guard Permissions(claims.video) == member.granted,
            BandwidthProfile(claims.video) == member.options.grantedBandwidth,
            [SubscribeRule](claims.video) == member.grantedRules
        else { throw RoomError(.grantsChanged, "the grants differ from those of the token that joined; join again") }
    }

    /// Another token for a stay that goes on: its expiry and grants count from now on. What an operator has changed meanwhile stays as the operator wants it.
    ///
    /// Throws `permission_denied` where it is another participant's, what a join would throw, and `grants_changed` where `hidden` or `recorder` differ:
    /// others know of those.
    public mutating func refreshToken(
        _ claims: AccessClaims, of session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try member(session)
        guard claims.identity == member.info.identity, claims.apiKey == member.apiKey else {
            throw RoomError(.permissionDenied, "the token is not this participant's")
        }
        try Self.checkJoins(claims)
        try checkRoom(of: claims, member)
        let granted = Permissions(claims.video)
        guard granted.hidden == member.granted.hidden, granted.recorder == member.granted.recorder else {
            throw RoomError(.grantsChanged, "hidden and recorder cannot change during a stay; join again")
        }
        let before = settings(of: member)
        roster.update(session) { member in
            member.granted = granted
            member.tokenID = claims.tokenID
            member.tokenExpiry = turn.moment(ofSecond: claims.expiresAt)
            member.options.grantedBandwidth = BandwidthProfile(claims.video)
            member.grantedRules = [SubscribeRule](claims.video)
        }
        if [SubscribeRule](claims.video) != member.grantedRules { followRules(of: session, &turn) }
        if member.permissions == member.granted { try setPermissions(granted, of: member.info.sid, turn: &turn) }
        bandwidthChanged(of: session, before, &turn)
        makeOffers(&turn)
    }

    /// A token for this room, or for the one that the member was moved from.
    private func checkRoom(of claims: AccessClaims, _ member: Member) throws(RoomError) {
        if let room = member.tokenRoom, claims.video.room == room { return }
        try RoomNames.checkMatch(granted: claims.video.room, asked: name)
    }

    private static func checkJoins(_ claims: AccessClaims) throws(RoomError) {
        guard claims.video.roomJoin else { throw RoomError(.permissionDenied, "the token does not permit joining") }
    }

    /// One to publish and one to receive; a WHIP or WHEP session has one, and what the server does not carry none.
    private func promisedConnections(_ profile: ParticipantProfile, isSignalled: Bool) -> Int {
        guard policy.topology == .routed else { return 0 }
        return profile == .full && isSignalled ? 2 : 1
    }

    /// What follows the snapshot that was taken of what an intent did: the server's own offers.
    public mutating func settle(turn: inout RoomTurn) {
        makeOffers(&turn)
    }

    /// Whether the newcomer may come in, and how it will be shown.
    private func admit(_ request: JoinRequest, turn: inout RoomTurn) throws(RoomError) -> ParticipantInfo {
        guard !occupancy.hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
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
        try TextRule.label.check(request.client ?? "", "the client's name")
        if let id = request.receivingConnection { try checkConnectionID(id) }
        let permissions = Permissions(claims.video)
        switch request.profile {
        case .publishOnly where !permissions.canPublish:
            throw RoomError(.permissionDenied, "the token does not permit publishing")
        case .viewer where !permissions.canSubscribe:
            throw RoomError(.permissionDenied, "the token does not permit subscribing")
        default: break
        }
        guard request.encrypts || !policy.requiresEncryption else {
            throw RoomError(
                .encryptionRequired, "this room admits only participants that encrypt their media end to end")
        }
        try checkCapacity(identity: identity, profile: request.profile, hidden: permissions.hidden)
        guard !policy.waitingRoom || permissions.roomAdmin || waitingRoom.isLetIn(identity) else {
            throw waitingRoom.refusal(of: identity, at: turn.now)
        }
        var info = ParticipantInfo(
            sid: turn.sid("PA_"), identity: identity, name: name, metadata: metadata, profile: request.profile,
            permissions: permissions, joinedAt: turn.wallClock)
        info.encrypts = request.encrypts
        info.attributes = claims.attributes
        if permissions.canUpdateMetadata { info.attributes = try Self.merged(info.attributes, request.attributes) }
        info.client = request.client
        info.clientTraits = request.clientTraits
        return info
    }

    /// Whoever is about to be replaced does not count.
    func checkCapacity(identity: String, profile: ParticipantProfile, hidden: Bool) throws(RoomError) {
        let replaced = policy.duplicateIdentity == .allow ? nil : roster.session(identity: identity)
        let present = roster.all.filter { $0.session != replaced }
        guard present.count < context.limits.participants else { throw RoomError(.roomFull, "the room is full") }
        guard let most = policy.maxParticipants, counts(profile, hidden: hidden) else { return }
        let counted = present.count { counts($0.profile, hidden: $0.isHidden) }
        guard counted < most else { throw RoomError(.roomFull, "the room is full") }
    }

    func counts(_ profile: ParticipantProfile, hidden: Bool) -> Bool {
        (policy.countsHidden || !hidden) && (policy.countsPublishOnly || profile != .publishOnly)
    }

    func checkConnectionID(_ id: String) throws(RoomError) {
        guard !id.isEmpty, id.utf8.count <= context.limits.connectionIDBytes else {
            throw RoomError(
                .invalidRequest, "the name of a connection must have 1 to \(context.limits.connectionIDBytes) bytes")
        }
    }
}

extension Room {
    /// Says goodbye for `session`. Unknown sessions are already gone.
    public mutating func leave(_ session: SessionID, reason: LeaveReason = .left, turn: inout RoomTurn) {
        guard roster[session] != nil else { return }
        remove(session, reason: reason, turn: &turn)
        makeOffers(&turn)
    }

    /// Removes a participant by sid, or all who are here with an identity (operators).
    public mutating func removeParticipant(
        _ name: String, reason: LeaveReason = .removed, message: String? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let named = try session(named: name)
        let all = roster.session(sid: name) == named ? [named] : roster.sessions(identity: name)
        for session in all { remove(session, reason: reason, message: message, turn: &turn) }
        makeOffers(&turn)
    }

    /// The server is about to end, or (nil) is not any more: everybody is told, and whoever comes later.
    public mutating func setDrain(_ notice: DrainNotice?, turn: inout RoomTurn) {
        guard notice != drain else { return }
        drain = notice
        // Also to those who do not want to know who else is here: it is about themselves.
        for session in roster.sessions { roster.notify(session, .drainChanged(notice), &turn) }
    }

    /// Ends the stays of those whose token was revoked.
    public mutating func endStays(by revocation: Revocations.Subject, turn: inout RoomTurn) {
        let ending = roster.sessions.filter { session in
            roster[session].map { revocation.names(tokenID: $0.tokenID, identity: $0.info.identity) } ?? false
        }
        for session in ending { remove(session, reason: .tokenRevoked, turn: &turn) }
        if !ending.isEmpty { makeOffers(&turn) }
    }

    /// Ends the room and everybody's stay in it.
    public mutating func close(reason: LeaveReason, turn: inout RoomTurn) {
        guard !occupancy.hasEnded else { return }
        for session in roster.sessions { remove(session, reason: reason, turn: &turn) }
        end(&turn)
    }

    /// Takes a member out with all that belongs to it: others' subscriptions to its tracks, its tracks, its own
    /// subscriptions, its peers; then tells.
    mutating func remove(
        _ session: SessionID, reason: LeaveReason, message: String? = nil, turn: inout RoomTurn
    ) {
        guard let member = roster[session] else { return }
        roster.update(session) { $0.options.autoSubscribe = false }
        for connection in member.connections { endConnection(session, connection.id, commandsWorker: true, &turn) }
        for track in routing.tracks(of: session) { unpublish(track, &turn) }
        for subscription in routing.subscriptions(of: session) {
            endSubscription(subscription, notifies: false, &turn)
        }
        roster.notify(session, .ended(reason, message: message), &turn)
        if reason == .removed { waitingRoom.forget(member.info.identity) }
        forgetPlayback(of: session, reason: reason, &turn)
        turn.effects.append(.sessionEnded(session, reason))
        depart(member, reason, &turn)
    }

    /// Takes a member off the roster, of whose tracks, subscriptions and connections nothing is here any more, and tells the others.
    mutating func depart(_ member: Member, _ reason: LeaveReason, _ turn: inout RoomTurn) {
        let session = member.session
        roster.notify(
            about: session,
            .participantLeft(participant: member.info.sid, identity: member.info.identity, reason: reason),
            includingSubject: false, &turn)
        roster.remove(session)
        waitingTracks.remove(session)
        outdated.remove(session)
        announcement.becomesDue()
        turn.log(.participantLeft(member.info, reason: reason, hasConnected: member.hasConnected))
        if dominant.current == session { setDominant(nil, &turn) }
        if roster.isEmpty { occupancy.lastMemberLeft(at: turn.now) }
    }

    /// Puts a member on the roster, and tells the others.
    mutating func arrive(_ member: Member, _ turn: inout RoomTurn) {
        roster.insert(member)
        occupancy.memberJoined()
        announcement.becomesDue()
        turn.log(.participantJoined(member.info))
        roster.notify(about: member.session, .participantJoined(member.info), includingSubject: false, &turn)
    }

    /// The room is over.
    mutating func end(_ turn: inout RoomTurn) {
        endRecordings(&turn)
        occupancy.end()
        turn.media(.removeRoom(id))
        turn.log(.roomEnded)
        turn.effects.append(.roomEnded)
    }
}

// MARK: Signs of life and deadlines

extension Room {
    /// A sign of life of a signalled session.
    public mutating func touch(_ session: SessionID, turn: inout RoomTurn) {
        roster.update(session) { $0.lastSign = turn.now }
    }

    /// The socket of `session` is gone; media goes on.
    public mutating func detach(_ session: SessionID, turn: inout RoomTurn) {
        guard let member = roster[session], member.options.isSignalled, member.detachedSince == nil else { return }
        roster.update(session) { $0.detachedSince = turn.now }
    }

    /// `session` has a socket again.
    public mutating func attach(_ session: SessionID, turn: inout RoomTurn) throws(RoomError) {
        guard try member(session).options.isSignalled else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        roster.update(session) { member in
            member.detachedSince = nil
            member.lastSign = turn.now
        }
    }

    /// Whether the next `advance` has something to announce.
    public var hasNews: Bool { announcement.isDue && !roster.isEmpty }

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime {
        if occupancy.hasEnded { return .distantFuture }
        if hasNews { return MonotonicTime(milliseconds: 0) }
        var next = min(roomDeadline, waitingRoom.nextDeadline)
        if let empty = occupancy.deadline(policy) { return min(next, empty) }
        for member in roster.all { next = min(next, deadline(of: member)) }
        return next
    }

    /// Ends sessions without a sign of life, WHIP and WHEP sessions that do not connect, and a room that has been empty for long; announces how many
    /// are in the room.
    public mutating func advance(turn: inout RoomTurn) {
        guard !occupancy.hasEnded else { return }
        let overdue = roster.sessions.filter { session in roster[session].map { deadline(of: $0) <= turn.now } ?? false
        }
        for session in overdue {
            guard let member = roster[session] else { continue }
            remove(session, reason: reasonToEnd(member, at: turn.now), turn: &turn)
        }
        if !overdue.isEmpty { makeOffers(&turn) }
        if waitingRoom.expire(at: turn.now) { waitingRoomChanged(&turn) }
        if roomDeadline <= turn.now { return close(reason: .roomDurationReached, turn: &turn) }
        if announcement.isDue, let news = announcement.take(info) { roster.notifyAll(.roomUpdated(news), &turn) }
        if let empty = occupancy.deadline(policy), empty <= turn.now { end(&turn) }
    }

    private var roomDeadline: MonotonicTime { policy.maxDuration.map { createdMoment + $0 } ?? .distantFuture }

    private func deadline(of member: Member) -> MonotonicTime {
        min(signDeadline(of: member), stayDeadline(of: member))
    }

    /// When the policy ends the stay.
    private func stayDeadline(of member: Member) -> MonotonicTime {
        let longest = policy.maxStay.map { member.joined + $0 } ?? .distantFuture
        return policy.endsStayWithToken ? min(longest, member.tokenExpiry) : longest
    }

    private func reasonToEnd(_ member: Member, at now: MonotonicTime) -> LeaveReason {
        if stayDeadline(of: member) <= now {
            return policy.endsStayWithToken && member.tokenExpiry <= now ? .tokenExpired : .stayDurationReached
        }
        return member.options.isSignalled ? .timeout : .connectionLost
    }

    private func signDeadline(of member: Member) -> MonotonicTime {
        guard member.options.isSignalled else { return connectDeadline(of: member) }
        if let since = member.detachedSince { return since + context.limits.resumeWindow }
        return member.lastSign + context.limits.keepAliveTimeout
    }

    /// WHIP and WHEP sessions live as long as their connection. One that is up is watched by its worker, which reports its end; of one that does
    /// not come up nothing may ever be reported.
    private func connectDeadline(of member: Member) -> MonotonicTime {
        guard !member.connections.contains(where: { $0.state == .connected }) else { return .distantFuture }
        let latest = member.connections.map(\.connectingSince).max() ?? member.lastSign
        return latest + context.limits.connectTimeout
    }
}

import AccessTokens
import MediaControl
public import Primitives
public import SDP

/// One room as a pure state machine: intents go in with a ``RoomTurn``, effects come out in it.
///
/// Nothing here waits, reads a clock or draws its own random numbers. An intent either throws and changes nothing that
/// anybody could see, or is carried out with all its effects.
public struct Room: Sendable {
    /// Who may join. The host of the room keeps the password, and checks it before a join.
    public private(set) var lock = RoomLock.open
    private(set) var metadata: String
    /// The server is about to end.
    private(set) var drain: DrainNotice?
    let createdAt: Int64
    /// The same, for the room's maximum duration.
    private let createdMoment: MonotonicTime

    var state: RoomState
    var distribution = Distribution()
    var dataTracks = DataTracks()
    private var nonces = RecentNonces()
    private(set) var recordings = Recordings()
    private var waitingRoom = WaitingRoom()
    private var announcement = RoomAnnouncement()
    var occupancy: Occupancy

    /// The room's number, which also makes the numbers of everything in it unique in the process.
    public var id: RoomID { state.id }
    /// `RM_…`, one for each life of the room.
    public var sid: String { state.sid }
    /// The room's name.
    public var name: String { state.name }

    /// An empty room.
    public init(
        id: RoomID, name: String, policy: RoomPolicy, metadata: String, context: RoomContext, turn: inout RoomTurn
    ) {
        self.metadata = metadata
        state = RoomState(id: id, sid: turn.sid("RM_"), name: name, policy: policy, context: context)
        createdAt = turn.wallClock
        createdMoment = turn.now
        occupancy = Occupancy(emptySince: turn.now)
        turn.media(.addRoom(id))
        if policy.audio != RoomAudio() { turn.media(.setRoomAudio(id, policy.audio)) }
        turn.log(.roomStarted)
    }

    /// Sets the addresses at which clients reach the room's worker from now on; existing descriptions are not changed.
    public mutating func set(candidates: [Candidate]) { state.set(candidates: candidates) }

    /// Sets the maximum number of members from the next join on, if the room's policy permits more.
    public mutating func set(participants: Int) { state.set(participants: participants) }

    /// Whether a message of the application's server was not sent before; this call records it as sent.
    mutating func accept(_ message: RoomMessage) -> Bool { nonces.accept(message.nonce) }
}

// MARK: - Joining

extension Room {
    /// Admits a participant. A session of the same identity ends first. `isSignalled`: there is a socket on which
    /// events can be sent and which must send keep-alives.
    public mutating func join(
        _ request: JoinRequest, isSignalled: Bool, follow: FollowTarget? = nil, turn: inout RoomTurn
    ) throws(RoomError) -> SessionID {
        let identity = try checkJoin(request, at: turn.now)
        let info = try ParticipantInfo(request, identity: identity, &turn)
        let promised = promisedConnections(request.profile, isSignalled: isSignalled)
        // Several if the policy allowed them until now.
        let older = policy.duplicateIdentity == .allow ? [] : state.roster.sessions(identity: info.identity)
        guard older.isEmpty || policy.duplicateIdentity == .replace else {
            throw RoomError(.identityTaken, "a participant with this identity is in the room")
        }
        // Connections that the older sessions free can be reserved again.
        let freed = older.compactMap { state.roster[$0]?.reservedConnections }.reduce(0, +)
        try turn.reserveConnections(max(0, promised - freed))
        for session in older { remove(session, reason: .duplicateIdentity, turn: &turn) }
        let session = turn.sessionID()
        let options = MemberOptions(request, isSignalled: isSignalled, follow: follow)
        arrive(
            Member(
                session: session, apiKey: request.claims.apiKey, granted: info.permissions,
                tokenID: request.claims.tokenID,
                tokenExpiry: turn.moment(ofSecond: request.claims.expiresAt), joined: turn.now, info: info,
                options: options, promisedConnections: promised,
                grantedRules: [SubscribeRule](request.claims.video)), &turn)
        distribution.subscribeToAll(session, quietly: true, &state, &turn)
        if request.offering == .serverAtOnce { state.outdated.insert(session) }
        return session
    }

    /// One to publish and one to receive; a WHIP or WHEP session has one, and a room whose media the server does not carry none.
    private func promisedConnections(_ profile: ParticipantProfile, isSignalled: Bool) -> Int {
        guard policy.topology == .routed else { return 0 }
        return profile == .full && isSignalled ? 2 : 1
    }

    /// Sends what follows a newcomer's snapshot: which tracks it may not receive, who speaks, and the server's own offers.
    public mutating func settle(_ newcomer: SessionID, turn: inout RoomTurn) {
        state.announceForbiddenTracks(to: newcomer, &turn)
        if state.isAnybodySpeaking { state.announceSpeakers(to: newcomer, &turn) }
        makeOffers(&turn)
    }

    /// Whether this newcomer must wait, repeating the join, until somebody in the room decides.
    public func keepsWaiting(_ request: JoinRequest) -> Bool {
        policy.waitingRoom && !request.claims.video.roomAdmin && !waitingRoom.isLetIn(request.claims.identity ?? "")
    }

    /// The identity of a newcomer that may join; this does not check whether another member may have that identity, and whether connections are left.
    @discardableResult
    public func checkJoin(_ request: JoinRequest, at now: MonotonicTime) throws(RoomError) -> String {
        guard !occupancy.hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
        let identity = try state.check(request)
        guard !keepsWaiting(request) else { throw waitingRoom.refusal(of: identity, at: now) }
        return identity
    }
}

// MARK: - The waiting room

// A client that may not join yet repeats its request, and an operator or a moderator decides.
extension Room {
    /// The waiting guests, in order of arrival.
    public var guests: [WaitingGuest] { waitingRoom.guests }

    /// Records that a join was refused because nobody has admitted its bearer yet. The join has thrown `approval_required`.
    public mutating func noteGuest(_ request: JoinRequest, turn: inout RoomTurn) {
        guard let identity = request.claims.identity else { return }
        let guest = WaitingGuest(identity: identity, name: request.shownName, since: turn.wallClock)
        guard waitingRoom.ask(guest, at: turn.now) else { return }
        turn.log(.guestWaiting(guest))
        waitingRoom.notifyModerators(&state.roster, &turn)
    }

    /// Admits a waiting guest, or refuses it; `session` is the moderator (nil: an operator). A refused guest may ask again after a minute.
    ///
    /// Throws `permission_denied` if `session` is no moderator, and `guest_not_found` if no guest with this identity waits.
    public mutating func decide(
        onGuest identity: String, letsIn: Bool, by session: SessionID?, turn: inout RoomTurn
    ) throws(RoomError) {
        let decider = try session.map { session throws(RoomError) in try state.member(session) }
        if let decider { try decider.checkModerates() }
        guard letsIn ? waitingRoom.letIn(identity, at: turn.now) : waitingRoom.turnAway(identity, at: turn.now) else {
            throw RoomError(.guestNotFound, "nobody waits with this identity")
        }
        turn.log(.guestDecided(identity: identity, isLetIn: letsIn, by: decider?.info.sid))
        waitingRoom.notifyModerators(&state.roster, &turn)
    }

    /// `identity` need not wait, from now on.
    mutating func letIn(_ identity: String) { waitingRoom.admit(identity) }

    /// The rules have changed from `old`.
    mutating func waitingRoomFollows(_ old: RoomPolicy, _ turn: inout RoomTurn) {
        waitingRoom.policyChanged(from: old, to: policy, &state.roster, &turn)
    }
}

// MARK: - Leaving

extension Room {
    /// The server is about to end, or (nil) no longer is: everybody is notified, later members, too.
    public mutating func setDrain(_ notice: DrainNotice?, turn: inout RoomTurn) {
        guard notice != drain else { return }
        drain = notice
        // Also to members that do not want to know who else is here: it is about themselves.
        for session in state.roster.sessions { state.roster.notify(session, .drainChanged(notice), &turn) }
    }

    /// Ends the room and everybody's stay in it.
    public mutating func close(reason: LeaveReason, turn: inout RoomTurn) {
        guard !occupancy.hasEnded else { return }
        fallSilent(&turn)
        announcement.fallSilent()
        for session in state.roster.sessions { remove(session, reason: reason, turn: &turn) }
        end(&turn)
    }

    /// Removes a member with all that belongs to it: others' subscriptions to its tracks, its tracks, its own
    /// subscriptions, its peers; then notifies.
    mutating func remove(
        _ session: SessionID, reason: LeaveReason, message: String? = nil, turn: inout RoomTurn
    ) {
        guard let member = state.roster[session] else { return }
        state.roster.update(session) { $0.stopAsking() }
        endConnections(of: session, &turn)
        for subscription in state.routing.subscriptions(of: session) {
            distribution.end(subscription, notifies: false, &state, &turn)
        }
        state.roster.notify(session, .ended(reason, message: message), &turn)
        if reason == .removed { waitingRoom.forget(member.info.identity) }
        forgetPlayback(of: session, reason: reason, &turn)
        turn.effects.append(.sessionEnded(session, reason))
        depart(member, reason, &turn)
    }

    /// Removes a member from the roster, after its tracks, subscriptions and connections, and notifies the others.
    mutating func depart(
        _ member: Member, _ reason: LeaveReason, keepsConnections: Bool = false, _ turn: inout RoomTurn
    ) {
        let (session, info) = (member.session, member.info)
        state.roster.notify(
            about: session,
            .participantLeft(participant: info.sid, identity: info.identity, reason: reason),
            includingSubject: false, &turn)
        state.dismiss(member, at: turn.now)
        distribution.memberLeft(session)
        dataTracks.memberLeft(member, &state, &turn)
        state.outdated.remove(session)
        if recordings.participantLeaves(info.sid, &turn) { recordingsChanged(&turn) }
        roomChanged()
        turn.log(
            .participantLeft(info, reason: reason, hasConnected: info.hasConnected, keepsConnections: keepsConnections))
        if distribution.followMode.isDominant(session) { distribution.setDominant(nil, &state, &turn) }
        if state.roster.isEmpty { occupancy.lastMemberLeft(at: turn.now) }
    }

    /// Puts a member on the roster, and notifies the others.
    mutating func arrive(_ member: Member, _ turn: inout RoomTurn) {
        state.admit(member)
        occupancy.memberJoined()
        roomChanged()
        turn.log(.participantJoined(member.info))
        state.roster.notify(about: member.session, .participantJoined(member.info), includingSubject: false, &turn)
        dataTracks.memberArrived(member, &state, &turn)
    }

    /// The room has ended.
    private mutating func end(_ turn: inout RoomTurn) {
        endRecordings(&turn)
        occupancy.end()
        turn.media(.removeRoom(id))
        turn.log(.roomEnded)
        turn.effects.append(.roomEnded)
    }
}

// MARK: - Recording

extension Room {
    /// Recordings in progress.
    public var recordingsInProgress: [RecordingInfo] { recordings.shown(policy) }

    /// Begins a recording. `participant` may be a sid or an identity. Refused where nothing of it can be recorded; a track that is recorded already is not
    /// recorded twice.
    public mutating func startRecording(
        _ scope: RecordingScope, options: RecordingOptions = RecordingOptions(), turn: inout RoomTurn
    ) throws(RoomError) -> RecordingInfo {
        let info = try recordings.start(scope, options, state, &turn)
        recordingsChanged(&turn)
        return info
    }

    /// Ends a recording. The room's policy does not begin another before its recording rules change.
    public mutating func stopRecording(_ sid: String, turn: inout RoomTurn) throws(RoomError) {
        try recordings.stop(sid, &turn)
        recordingsChanged(&turn)
    }

    /// The recorder has stopped recording a stream, because the disk is full: its track is recorded again when there is space.
    public mutating func recorderGaveUp(_ stream: SubscriptionID, turn: inout RoomTurn) {
        recordings.giveUp(stream, &turn)
        recordingsMayNeedFirstCodecs(&turn)
    }

    /// Members are notified at once; then the tracks that recordings want now are recorded.
    private mutating func recordingsChanged(_ turn: inout RoomTurn) {
        announce(&turn)
        recordings.recordWanted(&state, &turn)
        recordingsMayNeedFirstCodecs(&turn)
    }

    /// Recordings use a track's first codec, even if everybody else gets the backup codec.
    private mutating func recordingsMayNeedFirstCodecs(_ turn: inout RoomTurn) {
        state.regressions.markAll()
        reviewRegressions(&turn)
    }

    /// A track was added, or its source has changed.
    mutating func trackMayBeRecorded(_ id: TrackID, _ turn: inout RoomTurn) {
        if recordings.trackChanged(id, &state, &turn) { recordingsChanged(&turn) }
    }

    /// A track ended.
    mutating func endsRecording(of track: RoomTrack, _ turn: inout RoomTurn) {
        if recordings.trackEnds(track, &turn) { recordingsChanged(&turn) }
    }

    /// The recording rules have changed: recordings that they exclude end, those that they demand begin.
    mutating func followRecordingRules(_ turn: inout RoomTurn) {
        if recordings.rulesChanged(policy, &turn) { recordingsChanged(&turn) }
        if recordings.follow(state, &turn) {
            recordingsChanged(&turn)
        } else {
            recordings.recordWanted(&state, &turn)
        }
        announce(&turn)
    }

    /// Ends all recordings in progress: the room ends.
    private mutating func endRecordings(_ turn: inout RoomTurn) {
        recordings.roomEnds()
        for sid in recordings.sids where recordings.end(sid, &turn) { recordingsChanged(&turn) }
    }
}

// MARK: - The room as a whole

extension Room {
    /// What members know of the room as a whole has changed: they are notified with the next deadline.
    mutating func roomChanged() { announcement.becomesDue() }

    /// Notifies members at once of the room's state, if it has changed.
    mutating func announce(_ turn: inout RoomTurn) {
        guard let news = announcement.news(of: info) else { return }
        for session in state.roster.sessions where news.isForAll || state.roster[session]?.options.hasRoster == true {
            state.roster.notify(session, .roomUpdated(news.info), &turn)
        }
    }

    /// Whether the room has ended.
    var hasEnded: Bool { occupancy.hasEnded }

    /// Sets who may join from now on; members stay. Throws `permission_denied` if the policy does not permit `session` to do this (nil: an operator).
    public mutating func setLock(
        _ lock: RoomLock, by session: SessionID?, turn: inout RoomTurn
    ) throws(RoomError) {
        try checkLockRight(of: session)
        // A changed password is logged like a lock; members see no difference.
        guard lock != self.lock || lock == .password else { return }
        self.lock = lock
        roomChanged()
        turn.log(.lockChanged(lock, by: session.flatMap { state.roster[$0]?.info.sid }))
    }

    /// Sets the room's metadata, for everybody.
    public mutating func setMetadata(_ metadata: String, turn: inout RoomTurn) throws(RoomError) {
        try TextRule.metadata.check(metadata, "the metadata")
        guard metadata != self.metadata else { return }
        self.metadata = metadata
        roomChanged()
    }
}

// MARK: - Deadlines

extension Room {
    /// Whether the next `advance` has something to announce or to offer.
    public var hasNews: Bool { announcement.isDue && !state.roster.isEmpty || owesOffers }

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime {
        if occupancy.hasEnded { return .distantFuture }
        if hasNews { return MonotonicTime(milliseconds: 0) }
        var next = min(roomDeadline, waitingRoom.nextDeadline, recordings.nextTry)
        if let emptyRoomDeadline { return min(next, emptyRoomDeadline) }
        let policy = policy, limits = state.context.limits
        for member in state.roster.all { next = min(next, member.deadline(policy, limits)) }
        return next
    }

    /// Ends sessions without keep-alives, WHIP and WHEP sessions that do not connect, and a room that has been empty for its timeout; announces the number
    /// of members; tries again to record what could not be recorded; makes the offers that earlier steps left.
    public mutating func advance(turn: inout RoomTurn) {
        guard !occupancy.hasEnded else { return }
        let overdue = state.roster.sessions.filter { session in
            state.roster[session].map { $0.deadline(policy, state.context.limits) <= turn.now } ?? false
        }
        for session in overdue {
            guard let member = state.roster[session] else { continue }
            remove(session, reason: member.reasonToEnd(at: turn.now, policy), turn: &turn)
        }
        makeOffers(&turn)
        if waitingRoom.expire(at: turn.now) { waitingRoom.notifyModerators(&state.roster, &turn) }
        if roomDeadline <= turn.now { return close(reason: .roomDurationReached, turn: &turn) }
        if announcement.isDue { announce(&turn) }
        if recordings.nextTry <= turn.now {
            recordings.recordWanted(&state, &turn)
            recordingsMayNeedFirstCodecs(&turn)
        }
        if let emptyRoomDeadline, emptyRoomDeadline <= turn.now { end(&turn) }
    }

    /// When the room ends because it is empty; nil while it has members. It waits for guests in the waiting room and those just admitted: their next join would
    /// make another room, which may have no waiting room.
    private var emptyRoomDeadline: MonotonicTime? {
        occupancy.deadline(policy).map { max($0, waitingRoom.keepsRoomUntil) }
    }

    /// When the policy ends the room.
    var roomDeadline: MonotonicTime { policy.maxDuration.map { createdMoment + $0 } ?? .distantFuture }
}

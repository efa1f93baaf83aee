import MediaControl
public import Primitives

// Requests of sessions and operators other than descriptions, messages, and snapshots and lists.

extension Room {
    /// Carries out a request of a session.
    public mutating func perform(
        _ request: SessionRequest, session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try state.member(session)
        switch request {
        case .announce(let announcement): try announce(announcement, member, &turn)
        case .setMuted(let track, let muted): try setMuted(track, muted, member, &turn)
        case .unpublish(let track):
            let published = try state.track(track)
            guard published.publisher == session else {
                throw RoomError(.permissionDenied, "the track belongs to another participant")
            }
            unpublish(published.id, &turn)
        case .subscribe, .unsubscribe, .setAutoSubscribe, .setPaused, .setPreference, .setView,
            .setViewInAdvance, .pauseAllVideo, .setAudioOnly, .requestKeyframe:
            try distribution.perform(request, member, &state, &turn)
        case .setBandwidth(let profile): setBandwidth(profile, of: session, &turn)
        case .setMetadata(let name, let metadata):
            // LiveKit's SDKs repeat both with every change of an attribute: unchanged values cost nothing and are not announced.
            let info = member.info
            guard (name ?? info.name, metadata ?? info.metadata) != (info.name, info.metadata) else { break }
            let bytes = (name ?? "").utf8.count + (metadata ?? "").utf8.count
            try state.chargeChange(of: member, adding: bytes, at: turn.now)
            try rename(session, name, metadata, &turn)
        case .setAttributes(let attributes):
            try state.chargeChange(of: member, adding: attributes.byteCount, at: turn.now)
            try setAttributes(attributes, of: session, &turn)
        case .relay(let to, let payload): try relay(payload, to: to, from: member, &turn)
        case .requestUnmute(let track):
            try member.checkModerates()
            try requestUnmute(track, by: member.info.sid, turn: &turn)
        case .letIn(let identity): try decide(onGuest: identity, letsIn: true, by: session, turn: &turn)
        case .turnAway(let identity): try decide(onGuest: identity, letsIn: false, by: session, turn: &turn)
        case .remove(let participant):
            try member.checkModerates()
            remove(try state.session(named: participant), reason: .removed, turn: &turn)
        case .setAudience(let audience):
            try state.chargeAudience(audience, of: member, at: turn.now)
            try distribution.setAudience(audience, of: session, &state, &turn)
        case .requestRoster: giveRoster(session, &turn)
        case .send(let message): try send(message, from: session, turn: &turn)
        case .wantSpeakers(let wants):
            state.roster.update(session) { $0.options.wantsSpeakers = wants }
            state.announceSpeakers(to: session, &turn)
        case .report(let reports): note(reports, of: member, &turn)
        case .dataTrack(let request):
            if case .publish = request { try state.charge(.publication, of: session, at: turn.now) }
            try dataTracks.perform(request, by: member, &state, &turn)
        }
        makeOffers(&turn)
    }

    /// Tracks that the member no longer receives are skipped.
    private mutating func note(_ reports: [PlaybackReport], of member: Member, _ turn: inout RoomTurn) {
        var new = Freezes()
        var isKnown = false
        for report in reports {
            guard let track = state.routing.track(sid: report.track)?.id,
                let subscription = state.routing.subscription(of: member.session, to: track)
            else { continue }
            isKnown = true
            state.routing.update(subscription.id) { subscription in
                new = new + subscription.freezes.note(report.freezes, stay: turn.now - member.stay.joined)
            }
        }
        if isKnown { turn.effects.append(.freezesReported(participant: member.info.sid, new)) }
    }

    /// Changes a participant's name or metadata; nil leaves them unchanged. `attributes` are merged into its own.
    public mutating func setParticipant(
        _ participant: String, name: String?, metadata: String?, attributes: [String: String] = [:],
        turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try state.session(named: participant)
        let merged = try state.member(session).info.attributes.changed(by: attributes)
        try checkTexts(name, metadata)
        state.roster.update(session) { $0.info.attributes = merged }
        try rename(session, name, metadata, &turn)
    }

    /// Changes a participant's name or metadata; nil leaves them unchanged.
    mutating func rename(
        _ session: SessionID, _ name: String?, _ metadata: String?, _ turn: inout RoomTurn
    ) throws(RoomError) {
        try checkTexts(name, metadata)
        state.roster.update(session) { member in
            member.info.name = name ?? member.info.name
            member.info.metadata = metadata ?? member.info.metadata
        }
        state.participantChanged(session, &turn)
        if let info = participant(session) { turn.log(.participantUpdated(info)) }
    }

    func checkTexts(_ name: String?, _ metadata: String?) throws(RoomError) {
        try TextRule.label.check(name ?? "", "the name")
        try TextRule.metadata.check(metadata ?? "", "the metadata")
    }

    /// Named texts of a participant; an empty one removes the name.
    mutating func setAttributes(
        _ changes: [String: String], of session: SessionID, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let attributes = try state.member(session).info.attributes.changed(by: changes)
        state.roster.update(session) { $0.info.attributes = attributes }
        state.participantChanged(session, &turn)
        if let info = participant(session) { turn.log(.participantUpdated(info)) }
    }

    private mutating func relay(
        _ payload: String, to name: String, from member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard policy.topology == .peerToPeer else {
            throw RoomError(.relayNotAllowed, "only rooms with topology peerToPeer relay messages")
        }
        guard member.permissions.canPublishData else {
            throw RoomError(.permissionDenied, "not permitted to send data")
        }
        guard payload.utf8.count <= state.context.limits.relayBytes else {
            throw RoomError(.tooLarge, "the payload is too long")
        }
        let target = try state.session(named: name)
        guard target != member.session, state.roster[target]?.isHidden == false else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        state.roster.notify(
            target, .relayed(from: member.info.sid, identity: member.info.identity, payload: payload), &turn)
    }

    /// A member that joined without a roster requests it.
    private mutating func giveRoster(_ session: SessionID, _ turn: inout RoomTurn) {
        guard state.roster[session]?.options.hasRoster == false else { return }
        state.roster.update(session) { $0.options.hasRoster = true }
        // It was not notified of what has changed since it joined.
        state.roster.notify(session, .roomUpdated(info), &turn)
        for info in state.others(than: session) { state.roster.notify(session, .participantJoined(info), &turn) }
        if let dominantSpeaker = distribution.followMode.dominantSpeaker(state) {
            state.roster.notify(session, .dominantSpeakerChanged(participant: dominantSpeaker), &turn)
        }
    }
}

// MARK: - Messages

extension Room {
    /// The member that this peer belongs to, and how its messages are encoded.
    public func messageSender(_ peer: PeerID) -> (session: SessionID, protocol: DataProtocol)? {
        guard let owner = state.roster.owner(of: peer), let member = state.roster[owner.session] else { return nil }
        return (owner.session, member.options.dataProtocol)
    }

    /// Sends a member's message, or refuses it with a reason. `peer`: the message came over a data channel of this peer, whose own limits slow down a sender
    /// that is too fast; a message that came another way is refused then.
    public mutating func send(
        _ message: RoomMessage, from session: SessionID, over peer: PeerID? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try state.member(session)
        try state.checkSendsMessages(member)
        try message.check(state.context.limits)
        var sent = member.sentMessages
        guard !sent.includes(message) else { return }
        // Before the message counts as sent: a sender that was refused because it is too fast may repeat it without having read the refusal.
        if peer == nil { try sent.charge(state.context.limits, at: turn.now) }
        sent.note(message)
        state.roster.update(session) { $0.sentMessages = sent }
        var message = message
        message.participant = member.info.sid
        message.identity = member.info.identity
        let receivers = try receivers(of: &message, from: member)
        state.roster.deliver(message, to: receivers, source: peer, state.context.limits, &turn)
    }

    /// For a frame of a data track: the track's subscribers.
    private func receivers(of message: inout RoomMessage, from member: Member) throws(RoomError) -> [SessionID] {
        guard let handle = message.dataTrack else {
            return try state.roster.receivers(of: message, except: member.session)
        }
        return try dataTracks.route(&message, handle: handle, of: member)
    }

    /// The message of this cost from a peer has been handled: the worker may accept its next one.
    public func release(_ cost: Int, of peer: PeerID, turn: inout RoomTurn) {
        turn.media(.releaseData(peer, cost: cost))
    }

    /// Sends a message of an operator or of the application's server.
    public mutating func sendFromServer(_ message: RoomMessage, turn: inout RoomTurn) throws(RoomError) {
        try message.check(state.context.limits)
        // A message that reached nobody may be sent again.
        let receivers = try state.roster.receivers(of: message, except: nil)
        guard accept(message) else { return }
        var message = message
        message.participant = nil
        message.identity = nil
        state.roster.deliver(message, to: receivers, source: nil, state.context.limits, &turn)
    }

    /// The member that a call to `name` (identity or sid) reaches; refused if it has no channel of the protocol in which the call is encoded.
    public func receiver(ofCallTo name: String, protocol: String) throws(RoomError) -> SessionID {
        let session = try state.session(named: name)
        let member = try state.member(session)
        guard member.options.dataProtocol.name == `protocol`, member.channel(for: .reliable) != nil else {
            throw RoomError(.connectionNotFound, "the participant has no channel on which it could be called")
        }
        return session
    }

    /// The number of the last message that a member sent; 0 if its client does not count them.
    public func lastSequence(of session: SessionID) -> UInt32 { state.roster[session]?.sentMessages.lastSequence ?? 0 }

    /// A message from a data channel was refused: a channel has no replies, so its sender gets an event.
    public mutating func refuseMessage(
        _ error: RoomError, topic: String?, from session: SessionID, turn: inout RoomTurn
    ) {
        state.roster.notify(session, .messageRefused(topic: topic, code: error.code, detail: error.detail), &turn)
    }
}

// MARK: - Captures

extension Room {
    /// A new id of a capture.
    public static func captureID(turn: inout RoomTurn) -> String { turn.sid("CA_") }

    /// Notifies a participant that its packets are captured, or no longer are, and logs it. For a participant that has left it is only logged; for one that was
    /// moved, it is in the log of the room in which it was captured.
    public mutating func noteCapture(
        _ notice: CaptureNotice, of participant: String, writesDown: Bool = true, turn: inout RoomTurn
    ) {
        if let session = state.find(participant) { state.roster.notify(session, .captureChanged(notice), &turn) }
        if writesDown { turn.log(.captureChanged(participant: participant, notice)) }
    }
}

// MARK: - What others see, and queries of the room's host

extension Room {
    /// The room's rules.
    public var policy: RoomPolicy { state.policy }
    /// Grows with each change of the rules, beginning at 1.
    public var policyRevision: UInt64 { state.policyRevision }

    /// The room as lists show it.
    public var info: RoomInfo {
        var info = RoomInfo(
            sid: sid, name: name, metadata: metadata, topology: policy.topology,
            maxParticipants: policy.maxParticipants,
            createdAt: createdAt)
        info.lock = lock
        info.allowsMessages = policy.allowsMessages
        info.recordings = recordingsInProgress
        for member in state.roster.all where !member.isHidden {
            info.participants += 1
            if state.routing.publishes(member.session) { info.publishers += 1 }
        }
        return info
    }

    /// A member with its tracks.
    public func participant(_ session: SessionID) -> ParticipantInfo? { state.participant(session) }

    /// The sids of what a session publishes or has announced, data tracks included.
    public func publications(of session: SessionID) -> Set<String> {
        guard let member = state.roster[session] else { return [] }
        let info = state.info(of: member)
        return Set(info.tracks.map(\.sid) + info.dataTracks.map(\.sid) + member.announcements.sids)
    }

    /// The session whose sid or identity is `name`.
    public func find(_ name: String) -> SessionID? { state.find(name) }

    /// A complete snapshot for one session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        let member = try state.member(session)
        var snapshot = SessionSnapshot(
            room: info, participant: state.info(of: member),
            others: member.options.hasRoster ? state.others(than: session) : [],
            subscriptions: state.routing.subscriptions(of: member.session).compactMap {
                state.routing[$0].map(state.info(of:))
            },
            dominantSpeaker: member.options.hasRoster ? distribution.followMode.dominantSpeaker(state) : nil,
            sequence: member.sequence)
        if member.permissions.roomAdmin { snapshot.guests = guests }
        snapshot.dataTracks = dataTracks.received(by: session, state)
        snapshot.drain = drain
        return snapshot
    }

    /// The subscriptions of one session, oldest first.
    public func subscriptions(of session: SessionID) -> [SubscriptionInfo] {
        state.routing.subscriptions(of: session).compactMap { state.routing[$0].map(state.info(of:)) }
    }

    /// Names and states of one session's connections, oldest first.
    public func connections(of session: SessionID) -> [(id: String, peer: PeerID, state: ConnectionState)] {
        (state.roster[session]?.connections ?? []).map { ($0.id, $0.peer, $0.state) }
    }

    /// The owner of a peer.
    public func owner(of peer: PeerID) -> (session: SessionID, connection: String)? {
        state.roster.owner(of: peer).map { ($0.session, $0.connection) }
    }

    /// A track and its publisher.
    public func published(_ track: TrackID) -> (session: SessionID, info: TrackInfo)? {
        state.routing[track].map { ($0.publisher, $0.info) }
    }

    /// A subscription and its subscriber.
    public func subscribed(_ subscription: SubscriptionID) -> (session: SessionID, info: SubscriptionInfo)? {
        state.routing[subscription].map { ($0.member, state.info(of: $0)) }
    }

    /// Counts for metrics.
    public var counts: (participants: Int, publishers: Int, tracks: Int, subscriptions: Int, connections: Int) {
        (
            state.roster.count, state.routing.publisherCount, state.routing.trackCount, state.routing.subscriptionCount,
            state.roster.connectionCount
        )
    }

    /// The numbers of sessions that were made over HTTP: WHIP sessions publish, WHEP sessions play.
    public var httpSessions: (whip: Int, whep: Int) {
        let all = state.roster.all.filter { !$0.options.isSignalled && $0.playback == nil }
        let whip = all.count { $0.info.profile == .publishOnly }
        return (whip, all.count - whip)
    }

    /// Sessions that wait to be resumed.
    public var detachedCount: Int { state.roster.all.count { $0.stay.isDetached } }

    /// Whether the room is empty.
    public var isEmpty: Bool { state.roster.isEmpty }
    /// The number of members.
    public var memberCount: Int { state.roster.count }
    /// Sessions in the order in which they joined.
    public var sessions: [SessionID] { state.roster.sessions }
    /// Whether `session` is in this room.
    public func has(_ session: SessionID) -> Bool { state.roster[session] != nil }
    /// Whether a member has this identity.
    public func hasMember(identity: String?) -> Bool { identity.flatMap(state.roster.session(identity:)) != nil }
    /// Whether a newcomer with this identity would replace the member that has it.
    public func replaces(identity: String?) -> Bool {
        policy.duplicateIdentity == .replace && hasMember(identity: identity)
    }
    /// Whether the room has a peer or a track of this number.
    public func owns(_ number: UInt64) -> Bool {
        state.roster.owner(of: PeerID(number)) != nil || state.routing[TrackID(number)] != nil
    }
    /// Peer connections of the server that are reserved for this room's members: for each as many as its join was promised, or as it has, if these
    /// are more.
    public var reservedConnections: Int { state.roster.reservedConnections }

    /// A participant's own rules; nil: those of the room apply to it.
    public func subscribeRules(of session: SessionID) -> [SubscribeRule]? { state.roster[session]?.subscribeRules }

    /// What one session's token permits; an operator may have changed its permissions since.
    public func granted(to session: SessionID) -> Permissions? { state.roster[session]?.granted }

    /// The limits that apply to one session's bandwidth.
    public func bandwidth(of session: SessionID) -> BandwidthSettings? {
        state.roster[session].map(state.settings(of:))
    }

    /// The entity tag, which changes with each ICE restart.
    public func iceTag(_ session: SessionID, connection id: String) throws(RoomError) -> String {
        try state.connection(id, of: session).ice.ufrag
    }
}

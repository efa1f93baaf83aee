import MediaControl
import Primitives
import SDP

// Rules that change while people talk: what they end is ended at once, what they bound is bounded at once.

extension Room {
    /// Puts other rules in force. Limits of how many may be here hold for who comes later: members that no longer fit stay, unless `removesExcess`; then
    /// the last to join leave first. Codecs, simulcast and what descriptions say of bit rates hold from each connection's next negotiation on.
    ///
    /// Throws `invalid_request` where the topology would change under members.
    public mutating func setPolicy(
        _ new: RoomPolicy, removesExcess: Bool = false, turn: inout RoomTurn
    ) throws(RoomError) {
        guard !occupancy.hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
        guard new.topology == policy.topology || roster.isEmpty else {
            throw RoomError(.invalidRequest, "the topology can only change while nobody is in the room")
        }
        try Self.checkRecording(new, after: policy, turn)
        guard new != policy else { return }
        let old = policy
        policy = new
        policyRevision += 1
        turn.log(.policyChanged(revision: policyRevision))
        // Of what members know of the room, the most participants and the topology come from its policy.
        announcement.becomesDue()
        // Whoever is here already has been let in, and may come back.
        if policy.waitingRoom, !old.waitingRoom {
            for member in roster.all { waitingRoom.admit(member.info.identity) }
        }
        if !policy.waitingRoom, waitingRoom.open() { waitingRoomChanged(&turn) }
        if policy.audio != old.audio { turn.media(.setRoomAudio(id, policy.audio)) }
        if policy.alwaysHeard != old.alwaysHeard { updateAlwaysHeard(&turn) }
        if policy.playoutDelay != old.playoutDelay { updatePlayoutDelay(&turn) }
        if removesExcess { removeExcess(&turn) }
        for session in roster.sessions {
            endWhatIsNotPermitted(of: session, &turn)
            if policy.subscribeRules != old.subscribeRules { followRules(of: session, &turn) }
            applyPolicy(to: session, insteadOf: old, &turn)
        }
        if Self.recordingDiffers(policy, old) { followRecordingRules(&turn) }
        makeOffers(&turn)
    }

    /// What may be done from now on. Whoever is hidden stays so, and whoever is not: others know of it.
    ///
    /// Throws `invalid_request` where `hidden` or `recorder` would change.
    public mutating func setPermissions(
        _ permissions: Permissions, of name: String, turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try session(named: name)
        let member = try member(session)
        guard permissions.hidden == member.permissions.hidden, permissions.recorder == member.permissions.recorder
        else { throw RoomError(.invalidRequest, "hidden and recorder cannot change during a stay") }
        guard permissions != member.permissions else { return }
        roster.update(session) { $0.info.permissions = permissions }
        turn.log(.permissionsChanged(participant: member.info.sid, permissions))
        endWhatIsNotPermitted(of: session, &turn)
        if permissions.canSubscribe, !member.permissions.canSubscribe {
            subscribeToAll(session, quietly: false, &turn)
        }
        participantChanged(session, &turn)
        makeOffers(&turn)
    }

    /// Lets people in from now on as `lock` says; who is in stays. Throws `permission_denied` where the policy does not let `session` do this (nil: an
    /// operator).
    public mutating func setLock(
        _ lock: RoomLock, by session: SessionID?, turn: inout RoomTurn
    ) throws(RoomError) {
        try checkLockRight(of: session)
        // A changed password is announced like a lock: the log has it, members see no difference.
        guard lock != self.lock || lock == .password else { return }
        self.lock = lock
        announcement.becomesDue()
        turn.log(.lockChanged(lock, by: session.flatMap { roster[$0]?.info.sid }))
    }

    /// Whether `session` may lock the room (nil: an operator, who may).
    public func checkLockRight(of session: SessionID?) throws(RoomError) {
        guard let session else { return }
        let member = try member(session)
        let may =
            switch policy.lockRight {
            case .operators: false
            case .moderators: member.permissions.roomAdmin
            case .members: true
            }
        guard may else {
            throw RoomError(.permissionDenied, "only \(policy.lockRight.rawValue) may lock and unlock this room")
        }
    }

    /// Other metadata of the room, for everybody.
    public mutating func setMetadata(_ metadata: String, turn: inout RoomTurn) throws(RoomError) {
        try TextRule.metadata.check(metadata, "the metadata")
        guard metadata != self.metadata else { return }
        self.metadata = metadata
        announcement.becomesDue()
    }

    /// Another name or other metadata of a participant, where nil leaves it; `attributes` are merged into its own.
    public mutating func setParticipant(
        _ participant: String, name: String?, metadata: String?, attributes: [String: String] = [:],
        turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try session(named: participant)
        let merged = try Self.merged(try member(session).info.attributes, attributes)
        try checkTexts(name, metadata)
        roster.update(session) { $0.info.attributes = merged }
        try rename(session, name, metadata, &turn)
    }

    /// Whether the member receives no video, by its own wish or the room's rules.
    func isAudioOnly(_ member: Member) -> Bool { member.options.audioOnly || policy.audioOnly }

    /// Whether the member's permissions and the room's rules allow a source.
    func mayPublish(_ source: TrackSource, _ member: Member) -> Bool {
        member.permissions.mayPublish(source) && (policy.publishSources?.contains(source) ?? true)
            && (member.permissions.roomAdmin || !policy.moderatorSources.contains(source))
    }

    /// Whether the microphones of `identity` are forwarded however quiet they are.
    func isAlwaysHeard(_ identity: String) -> Bool { policy.alwaysHeard.contains(identity) }

    /// Commands it for the microphones of those whom another policy named, or names now.
    private mutating func updateAlwaysHeard(_ turn: inout RoomTurn) {
        for member in roster.all {
            let always = isAlwaysHeard(member.info.identity) || playbacks.has(member.session)
            for id in routing.tracks(of: member.session) where routing[id]?.info.kind == .audio {
                turn.media(.setTrackAlwaysForwarded(id, always))
            }
        }
    }

    /// Commands it for every video that is sent.
    private mutating func updatePlayoutDelay(_ turn: inout RoomTurn) {
        for id in roster.sessions.flatMap({ routing.subscriptions(of: $0) }) {
            guard routing[id]?.kind == .video, var description = routing[id]?.description else { continue }
            description.playoutDelay = policy.playoutDelay(after: description.playoutDelay)
            routing.update(id) { $0.description = description }
            turn.media(.updateSubscription(description))
        }
    }

    private mutating func removeExcess(_ turn: inout RoomTurn) {
        if policy.requiresEncryption {
            let open = roster.sessions.filter { roster[$0]?.info.encrypts == false }
            for session in open { remove(session, reason: .policyChanged, turn: &turn) }
        }
        guard let most = policy.maxParticipants else { return }
        let counted = roster.sessions.filter { session in
            roster[session].map { counts($0.profile, hidden: $0.isHidden) } ?? false
        }
        for session in counted.dropFirst(most).reversed() { remove(session, reason: .policyChanged, turn: &turn) }
    }

    /// Ends the tracks and subscriptions that the member may not have any more.
    mutating func endWhatIsNotPermitted(of session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        for id in routing.tracks(of: session) {
            guard let track = routing[id] else { continue }
            guard !mayPublish(track.info.source, member) || track.info.kind == .video && policy.audioOnly else {
                continue
            }
            unpublish(id, &turn)
            // The client still sends it.
            roster.notify(
                session,
                .publicationRefused(
                    connection: track.connection, mid: track.info.mid, track: track.info.clientTrackID,
                    code: .permissionDenied), &turn)
        }
        if !member.permissions.canSubscribe {
            for id in routing.subscriptions(of: session) { endSubscription(id, notifies: true, &turn) }
            forgetUnwantedWaiting(session)
        } else if isAudioOnly(member) {
            endVideo(of: member, &turn)
            forgetUnwantedWaiting(session)
        }
    }

    /// What the next negotiation of each connection agrees to, the member's bandwidth, and the videos that it may receive again.
    mutating func applyPolicy(to session: SessionID, insteadOf old: RoomPolicy, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        let rules = negotiationRules
        for connection in member.connections where connection.negotiation.policy != rules {
            roster.updateConnection(connection.id, of: session) { $0.negotiation.policy = rules }
        }
        let before = settings(of: member, in: old)
        bandwidthChanged(of: session, before, &turn)
        if old.audioOnly, !policy.audioOnly { subscribeToAll(session, quietly: false, &turn) }
    }
}

/// Whom a change of a room's rules concerns, and how.
public struct PolicyImpact: Sendable, Hashable {
    /// What happens to one participant. A participant to whom nothing happens is not listed.
    public struct Participant: Sendable, Hashable {
        public var sid: String
        public var identity: String
        /// Its stay ends.
        public var leaves = false
        /// sids of its tracks that are ended.
        public var endedTracks: [String] = []
        /// sids of its tracks whose cap changes.
        public var cappedTracks: [String] = []
        /// sids of the tracks that it is no longer subscribed to.
        public var endedSubscriptions: [String] = []
        /// sids of the tracks that it is subscribed to from then on.
        public var newSubscriptions: [String] = []
        /// sids of its tracks that are recorded no longer.
        public var endedRecordings: [String] = []
        /// sids of its tracks that are recorded from then on.
        public var newRecordings: [String] = []
        /// What it receives is shared out or bounded in another way.
        public var changesBandwidth = false
    }

    /// In the order in which they joined.
    public var participants: [Participant] = []
    /// How many stay although the rules would not let them in any more.
    public var participantsBeyondLimit = 0
    public var publishersBeyondLimit = 0
}

extension Room {
    /// What ``setPolicy(_:removesExcess:turn:)`` would do, found by doing it to a copy.
    public func impact(
        of new: RoomPolicy, removesExcess: Bool, turn: consuming RoomTurn
    ) throws(RoomError) -> PolicyImpact {
        var copy = self
        try copy.setPolicy(new, removesExcess: removesExcess, turn: &turn)
        var impact = PolicyImpact()
        for session in sessions {
            if let participant = change(of: session, to: copy) { impact.participants.append(participant) }
        }
        let counted = copy.roster.all.count { copy.counts($0.profile, hidden: $0.isHidden) }
        impact.participantsBeyondLimit = max(0, counted - (new.maxParticipants ?? .max))
        impact.publishersBeyondLimit = max(0, copy.routing.publisherCount - (new.maxPublishers ?? .max))
        return impact
    }

    /// How `session` fares otherwise in `copy`; nil where it does not.
    private func change(of session: SessionID, to copy: Room) -> PolicyImpact.Participant? {
        guard let member = roster[session] else { return nil }
        let none = PolicyImpact.Participant(sid: member.info.sid, identity: member.info.identity)
        var change = none
        guard let other = copy.roster[session] else {
            change.leaves = true
            return change
        }
        for id in routing.tracks(of: session) {
            guard let track = routing[id] else { continue }
            if let kept = copy.routing[id] {
                if kept.description.maximumBitrate != track.description.maximumBitrate {
                    change.cappedTracks.append(track.info.sid)
                }
            } else {
                change.endedTracks.append(track.info.sid)
            }
        }
        let before = subscribedTracks(of: session)
        let after = copy.subscribedTracks(of: session)
        change.endedSubscriptions = before.filter { !after.contains($0) }
        change.newSubscriptions = after.filter { !before.contains($0) }
        let recorded = recordedTracks(of: session)
        let recordedLater = copy.recordedTracks(of: session)
        change.endedRecordings = recorded.filter { !recordedLater.contains($0) }
        change.newRecordings = recordedLater.filter { !recorded.contains($0) }
        change.changesBandwidth = settings(of: member).downlinkPolicy != copy.settings(of: other).downlinkPolicy
        return change == none ? nil : change
    }

    private func recordedTracks(of session: SessionID) -> [String] {
        routing.tracks(of: session).filter { recordings.isRecorded($0) }.compactMap { routing[$0]?.info.sid }
    }

    private func subscribedTracks(of session: SessionID) -> [String] {
        routing.subscriptions(of: session).compactMap { routing[$0] }.compactMap { routing.track(of: $0)?.info.sid }
    }
}

import MediaControl
import Primitives
import SDP

// Rules that change during a call: what they forbid ends at once, and their caps apply at once.

extension Room {
    /// Puts other rules in force. Limits on the number of members apply to later joins: members beyond them stay, unless `removesExcess`; then
    /// the last to join leave first. Codecs, simulcast and bit rates in descriptions apply from each connection's next negotiation on.
    ///
    /// Throws `invalid_request` if the topology would change while members are in the room.
    public mutating func setPolicy(
        _ new: RoomPolicy, removesExcess: Bool = false, by: String? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        guard !hasEnded else { throw RoomError(.roomClosed, "the room is closing") }
        guard new.topology == policy.topology || state.roster.isEmpty else {
            throw RoomError(.invalidRequest, "the topology can only change while nobody is in the room")
        }
        try Self.checkRecording(new, after: policy, turn)
        guard new != policy else {
            // Members that stayed beyond these same limits when they were set.
            guard removesExcess else { return }
            removeExcess(&turn)
            return makeOffers(&turn)
        }
        let old = policy
        state.set(new)
        turn.log(.policyChanged(revision: policyRevision, by: by))
        // These parts of what members know of the room come from its policy: the maximum number of participants, the topology, and whether there are messages.
        roomChanged()
        waitingRoomFollows(old, &turn)
        if policy.audio != old.audio { turn.media(.setRoomAudio(id, policy.audio)) }
        if policy.alwaysHeard != old.alwaysHeard { updateAlwaysHeard(&turn) }
        if policy.playoutDelay != old.playoutDelay { updatePlayoutDelay(&turn) }
        if removesExcess { removeExcess(&turn) }
        for session in state.roster.sessions {
            endWhatIsNotPermitted(of: session, &turn)
            if policy.subscribeRules != old.subscribeRules { distribution.followRules(of: session, &state, &turn) }
            applyPolicy(to: session, insteadOf: old, &turn)
        }
        if policy.recordsOtherwise(than: old) { followRecordingRules(&turn) }
        makeOffers(&turn)
    }

    /// Sets the permissions from now on. Hidden members stay hidden, and others stay visible: the other members know of them.
    ///
    /// Throws `invalid_request` if `hidden` or `recorder` would change.
    public mutating func setPermissions(
        _ permissions: Permissions, of name: String, turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try state.session(named: name)
        let member = try state.member(session)
        guard permissions.hidden == member.permissions.hidden, permissions.recorder == member.permissions.recorder
        else { throw RoomError(.invalidRequest, "hidden and recorder cannot change during a stay") }
        guard permissions != member.permissions else { return }
        state.roster.update(session) { $0.info.permissions = permissions }
        turn.log(.permissionsChanged(participant: member.info.sid, permissions))
        endWhatIsNotPermitted(of: session, &turn)
        if permissions.canSubscribe, !member.permissions.canSubscribe {
            distribution.subscribeToAll(session, quietly: false, &state, &turn)
            distribution.follow(&state, &turn)
            dataTracks.subscribeAgain(session, &state, &turn)
            state.announceForbiddenTracks(to: session, &turn)
        }
        state.participantChanged(session, &turn)
        if permissions.roomAdmin != member.permissions.roomAdmin, !guests.isEmpty {
            // The next change of the list may be a long time away.
            state.roster.notify(session, .waitingRoomChanged(permissions.roomAdmin ? guests : []), &turn)
        }
        makeOffers(&turn)
    }

    /// Sets the rules for what a participant may receive from now on; nil: its token's, or else the room's. Subscriptions that are no longer permitted end at
    /// once; newly permitted tracks are subscribed at once if the participant subscribes automatically.
    public mutating func setSubscribeRules(
        _ rules: [SubscribeRule]?, of participant: String, turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try state.session(named: participant)
        guard (rules?.count ?? 0) <= SubscribeRule.maximumCount else {
            throw RoomError(.tooLarge, "there are more than \(SubscribeRule.maximumCount) subscribe rules")
        }
        state.roster.update(session) { $0.operatorRules = rules }
        distribution.followRules(of: session, &state, &turn)
        makeOffers(&turn)
    }

    /// Checks that `session` may lock the room (nil: an operator, who always may).
    public func checkLockRight(of session: SessionID?) throws(RoomError) {
        guard let session else { return }
        let member = try state.member(session)
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

    /// Refuses rules that demand a recording that is impossible, unless they did so before (`old`).
    public static func checkRecording(
        _ policy: RoomPolicy, after old: RoomPolicy?, _ turn: borrowing RoomTurn
    ) throws(RoomError) {
        guard policy.recording == .fromStart, old?.recording != .fromStart || old?.topology != policy.topology else {
            return
        }
        guard policy.topology == .routed else {
            throw RoomError(
                .notRouted, "a room that is peer to peer cannot be recorded: its media does not pass the server")
        }
        if turn.recordingAdmission.refusal == .disabled { throw RecordingRefusal.disabled.error }
    }

    /// The member changed its preferences for its bandwidth.
    mutating func setBandwidth(_ profile: BandwidthProfile, of session: SessionID, _ turn: inout RoomTurn) {
        guard let old = state.roster[session], old.options.bandwidth != profile else { return }
        state.roster.update(session) { $0.options.bandwidth = profile }
        bandwidthChanged(of: session, state.settings(of: old), &turn)
    }

    /// The limits of the member have changed since `before`.
    mutating func bandwidthChanged(of session: SessionID, _ before: BandwidthSettings, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        let settings = state.settings(of: member)
        for var connection in member.connections where connection.isOpened {
            connection.command(settings.downlinkPolicy, for: member, &turn)
            state.roster.store(connection, of: session)
        }
        state.capTracks(of: session, &turn)
        if settings.maxVideoSubscriptions?.value == 0 {
            distribution.endVideo(of: member, &state, &turn)
        } else if before.maxVideoSubscriptions?.value == 0 {
            distribution.subscribeToAll(session, quietly: false, &state, &turn)
        }
    }

    /// Updates the worker for the microphones of members that the former policy named, or the new one names.
    private mutating func updateAlwaysHeard(_ turn: inout RoomTurn) {
        // In the order of joining: the order of commands must not depend on that of a dictionary.
        for member in state.roster.sessions.compactMap({ state.roster[$0] }) {
            let always = state.isAlwaysHeard(member.info.identity) || member.playback != nil
            for id in state.routing.tracks(of: member.session) where state.routing[id]?.info.kind == .audio {
                turn.media(.setTrackAlwaysForwarded(id, always))
            }
        }
    }

    /// Updates the worker for every video that is sent.
    private mutating func updatePlayoutDelay(_ turn: inout RoomTurn) {
        for id in state.roster.sessions.flatMap({ state.routing.subscriptions(of: $0) }) {
            guard state.routing[id]?.kind == .video, var description = state.routing[id]?.description else { continue }
            description.playoutDelay = policy.playoutDelay(after: description.playoutDelay)
            state.routing.update(id) { $0.description = description }
            turn.media(.updateSubscription(description))
        }
    }

    private mutating func removeExcess(_ turn: inout RoomTurn) {
        for session in excess { remove(session, reason: .policyChanged, turn: &turn) }
    }

    /// Members that the policy would no longer admit: first those that do not encrypt if everybody must, then those beyond the limit, the last to join first.
    private var excess: [SessionID] {
        // The roster's sessions are in the order in which they joined; its members are in none.
        let members = state.roster.sessions.compactMap { state.roster[$0] }
        let open = policy.requiresEncryption ? members.filter { !$0.info.encrypts }.map(\.session) : []
        guard let most = policy.maxParticipants else { return open }
        let counted = members.filter {
            state.counts($0.profile, hidden: $0.isHidden) && ($0.info.encrypts || !policy.requiresEncryption)
        }
        return open + counted.map(\.session).dropFirst(most).reversed()
    }

    /// Ends the tracks and subscriptions that the member may no longer have.
    mutating func endWhatIsNotPermitted(of session: SessionID, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        dataTracks.endWhatIsNotPermitted(of: session, &state, &turn)
        for id in state.routing.tracks(of: session) {
            guard let track = state.routing[id] else { continue }
            guard !state.mayPublish(track.info.source, member) || track.info.kind == .video && policy.audioOnly else {
                continue
            }
            unpublish(id, &turn)
            // The client still sends it.
            state.roster.notify(
                session,
                .publicationRefused(
                    connection: track.connection, mid: track.info.mid, track: track.info.clientTrackID,
                    code: .permissionDenied), &turn)
        }
        if !member.permissions.canSubscribe {
            // A section that follows somebody is sent nothing: its client (WHEP) could not ask for another section.
            for id in state.routing.subscriptions(of: session) where state.routing[id]?.slot == nil {
                distribution.end(id, notifies: true, &state, &turn)
            }
            distribution.forgetUnwantedWaiting(session, state)
            distribution.follow(&state, &turn)
        } else if state.isAudioOnly(member) {
            distribution.endVideo(of: member, &state, &turn)
            distribution.forgetUnwantedWaiting(session, state)
        }
    }

    /// Applies the rules to the next negotiation of each connection, the member's bandwidth, and the videos that it may receive again.
    mutating func applyPolicy(to session: SessionID, insteadOf old: RoomPolicy, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        let rules = state.negotiationRules
        for connection in member.connections where connection.negotiation.policy != rules {
            state.roster.updateConnection(connection.id, of: session) { $0.negotiation.policy = rules }
        }
        let before = state.settings(of: member, in: old)
        bandwidthChanged(of: session, before, &turn)
        if old.audioOnly, !policy.audioOnly { distribution.subscribeToAll(session, quietly: false, &state, &turn) }
    }
}

// MARK: - What a change would do

extension Room {
    /// The effects of ``setPolicy(_:removesExcess:by:turn:)`` and the next ``advance(turn:)``, found by applying them to a copy.
    public func impact(
        of new: RoomPolicy, removesExcess: Bool, turn: consuming RoomTurn
    ) throws(RoomError) -> PolicyImpact {
        var copy = self
        try copy.setPolicy(new, removesExcess: removesExcess, turn: &turn)
        for member in copy.state.roster.all where copy.endOfStay(member) <= turn.now {
            copy.remove(member.session, reason: .policyChanged, turn: &turn)
        }
        var impact = PolicyImpact()
        impact.participants = RoomComparison(self, copy).changes(at: turn)
        impact.participantsBeyondLimit = copy.excess.count
        impact.publishersBeyondLimit = max(0, copy.state.routing.publisherCount - (new.maxPublishers ?? .max))
        return impact
    }

    /// When the policy ends the member's stay, by itself or with the room.
    func endOfStay(_ member: Member) -> MonotonicTime { min(roomDeadline, member.stayDeadline(policy)) }
}

extension RoomPolicy {
    fileprivate func recordsOtherwise(than other: RoomPolicy) -> Bool {
        recording != other.recording || recordingSources != other.recordingSources
            || recordingParticipants != other.recordingParticipants
    }
}

import MediaControl
import Primitives

extension Room {
    /// Carries out what a session asks for.
    public mutating func perform(
        _ request: SessionRequest, session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try member(session)
        switch request {
        case .announce(let announcement): try announce(announcement, member, &turn)
        case .setMuted(let track, let muted): try setMuted(track, muted, member, &turn)
        case .unpublish(let track):
            let published = try self.track(track)
            guard published.publisher == session else {
                throw RoomError(.permissionDenied, "the track belongs to another participant")
            }
            unpublish(published.id, &turn)
        case .subscribe, .unsubscribe, .setAutoSubscribe, .setPaused, .setPreference, .setView, .setBandwidth,
            .pauseAllVideo, .setAudioOnly, .requestKeyframe:
            try performSubscribing(request, member, &turn)
        case .setMetadata(let name, let metadata): try rename(session, name, metadata, &turn)
        case .relay(let to, let payload): try relay(payload, to: to, from: member, &turn)
        case .requestUnmute(let track):
            try checkModerates(member)
            try requestUnmute(track, by: member.info.sid, turn: &turn)
        case .letIn(let identity): try decide(onGuest: identity, letsIn: true, by: session, turn: &turn)
        case .turnAway(let identity): try decide(onGuest: identity, letsIn: false, by: session, turn: &turn)
        case .remove(let participant):
            try checkModerates(member)
            remove(try self.session(named: participant), reason: .removed, turn: &turn)
        case .setAudience(let identities): try setAudience(identities, of: session, &turn)
        case .requestRoster: giveRoster(session, &turn)
        case .wantSpeakers(let wants): roster.update(session) { $0.options.wantsSpeakers = wants }
        case .report(let reports): note(reports, of: member, &turn)
        }
        makeOffers(&turn)
    }

    /// Tracks that the member does not receive any more are left out.
    private mutating func note(_ reports: [PlaybackReport], of member: Member, _ turn: inout RoomTurn) {
        var new = Freezes()
        var isKnown = false
        for report in reports {
            guard let track = routing.track(sid: report.track)?.id,
                let subscription = routing.subscription(of: member.session, to: track)
            else { continue }
            isKnown = true
            routing.update(subscription.id) { subscription in
                new = new + subscription.freezes.note(report.freezes, stay: turn.now - member.joined)
            }
        }
        if isKnown { turn.effects.append(.freezesReported(participant: member.info.sid, new)) }
    }

    func checkModerates(_ member: Member) throws(RoomError) {
        guard member.permissions.roomAdmin else {
            throw RoomError(.permissionDenied, "only a moderator (roomAdmin) may do this")
        }
    }

    /// Another name or other metadata of a participant; nil leaves it.
    mutating func rename(
        _ session: SessionID, _ name: String?, _ metadata: String?, _ turn: inout RoomTurn
    ) throws(RoomError) {
        try TextRule.label.check(name ?? "", "the name")
        try TextRule.metadata.check(metadata ?? "", "the metadata")
        roster.update(session) { member in
            member.info.name = name ?? member.info.name
            member.info.metadata = metadata ?? member.info.metadata
        }
        participantChanged(session, &turn)
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
        guard payload.utf8.count <= context.limits.relayBytes else {
            throw RoomError(.tooLarge, "the payload is too long")
        }
        let target = try session(named: name)
        guard target != member.session, roster[target]?.isHidden == false else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        roster.notify(target, .relayed(from: member.info.sid, identity: member.info.identity, payload: payload), &turn)
    }

    /// A member that joined without a roster asks for it.
    private mutating func giveRoster(_ session: SessionID, _ turn: inout RoomTurn) {
        guard roster[session]?.options.hasRoster == false else { return }
        roster.update(session) { $0.options.hasRoster = true }
        for info in others(than: session) { roster.notify(session, .participantJoined(info), &turn) }
        if let dominantSpeaker {
            roster.notify(session, .dominantSpeakerChanged(participant: dominantSpeaker), &turn)
        }
    }
}

extension Room {
    /// Requests about what one receives.
    mutating func performSubscribing(
        _ request: SessionRequest, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let session = member.session
        switch request {
        case .subscribe(let track): try subscribeByHand(track, member, &turn)
        case .unsubscribe(let track):
            guard !stopWaiting(session, for: track) else { return }
            let subscription = try subscription(of: member, to: track)
            guard subscription.slot == nil else {
                throw RoomError(.invalidRequest, "a subscription that follows a participant cannot be ended alone")
            }
            if let id = subscription.track { roster.update(session) { _ = $0.unwanted.insert(id) } }
            endSubscription(subscription.id, notifies: true, &turn)
        case .setAutoSubscribe(let enabled):
            roster.update(session) { $0.options.autoSubscribe = enabled && member.profile != .publishOnly }
            subscribeToAll(session, quietly: false, &turn)
            forgetUnwantedWaiting(session)
            outdated.insert(session)
        case .setPaused(let track, let paused):
            let subscription = try subscription(of: member, to: track)
            var view = TrackView(subscription)
            view.isPaused = paused
            setView(view, of: subscription, &turn)
        case .setPreference(let track, let preference):
            let subscription = try subscription(of: member, to: track)
            var view = TrackView(subscription)
            view.preference = preference
            setView(view, of: subscription, &turn)
        case .setView(let track, let view): setView(view, of: try subscription(of: member, to: track), &turn)
        case .setBandwidth(let profile): setBandwidth(profile, of: session, &turn)
        case .pauseAllVideo(let paused): pauseAllVideo(member, paused, &turn)
        case .setAudioOnly(let enabled): setAudioOnly(member, enabled, &turn)
        case .requestKeyframe(let track):
            if let id = try subscription(of: member, to: track).track { turn.media(.requestKeyframe(id)) }
        default: break
        }
    }

    /// Applies a subscriber's preferences, and reports once what changed.
    private mutating func setView(_ view: TrackView, of old: RoomSubscription, _ turn: inout RoomTurn) {
        guard view != TrackView(old) else { return }
        routing.update(old.id) { subscription in
            subscription.preference = view.preference
            subscription.display = view.display
            subscription.paused = view.isPaused
        }
        if old.description != nil {
            // What is hidden now is not begun with another layer first.
            if view.display != old.display { turn.media(.setDisplayPreference(old.id, view.display)) }
            if view.preference != old.preference {
                routing.update(old.id) { $0.description?.preference = view.preference }
                turn.media(.setLayerPreference(old.id, view.preference))
            }
            updatePause(old.id, &turn)
        }
        subscriptionChanged(old.id, &turn)
    }

    private mutating func subscribeByHand(
        _ sid: String, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let track = try track(sid)
        roster.update(member.session) { _ = $0.unwanted.remove(track.id) }
        if let existing = try? subscription(of: member, to: sid) {
            // Again: what waits for a connection may have one now.
            if existing.state != .active { renegotiate(existing.id) }
            return
        }
        guard !(track.info.kind == .video && policy.audioOnly) else {
            throw RoomError(.permissionDenied, "the room is audio-only")
        }
        try checkSubscription(member, track)
        guard hasRoomForSubscription(member.session) else {
            throw RoomError(
                .limitExceeded,
                "subscription limit reached (\(context.limits.subscriptionsPerParticipant) per participant)")
        }
        subscribe(member.session, to: track.id, quietly: false, &turn)
    }

    /// One message stops all video, and one lets it go on where it was.
    private mutating func pauseAllVideo(_ member: Member, _ paused: Bool, _ turn: inout RoomTurn) {
        guard member.allVideoPaused != paused else { return }
        roster.update(member.session) { $0.allVideoPaused = paused }
        for id in routing.subscriptions(of: member.session) where routing[id]?.kind == .video {
            updatePause(id, &turn)
            subscriptionChanged(id, &turn)
        }
    }

    /// No video from now on, or an upgrade by renegotiation.
    private mutating func setAudioOnly(_ member: Member, _ enabled: Bool, _ turn: inout RoomTurn) {
        roster.update(member.session) { $0.options.audioOnly = enabled }
        if enabled {
            endVideo(of: member, &turn)
            forgetUnwantedWaiting(member.session)
        } else {
            subscribeToAll(member.session, quietly: false, &turn)
        }
    }
}

extension TrackView {
    /// What was said about a subscription so far.
    init(_ subscription: RoomSubscription) {
        self.init()
        preference = subscription.preference
        display = subscription.display
        isPaused = subscription.paused
    }
}

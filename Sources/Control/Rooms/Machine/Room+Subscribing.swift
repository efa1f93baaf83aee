import MediaControl
import Primitives

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
            if let id = subscription.track { members[session]?.unwanted.insert(id) }
            endSubscription(subscription.id, tells: true, &turn)
        case .setAutoSubscribe(let enabled):
            members[session]?.options.autoSubscribe = enabled && member.profile != .publishOnly
            subscribeToAll(session, quietly: false, &turn)
            forgetUnwantedWaiting(session)
            requestOffer(session)
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
    private mutating func setView(_ view: TrackView, of old: Subscription, _ turn: inout RoomTurn) {
        guard view != TrackView(old) else { return }
        subscriptions[old.id]?.preference = view.preference
        subscriptions[old.id]?.display = view.display
        subscriptions[old.id]?.paused = view.isPaused
        if old.description != nil {
            // What is hidden now is not begun with another layer first.
            if view.display != old.display { turn.media(.setDisplayPreference(old.id, view.display)) }
            if view.preference != old.preference {
                subscriptions[old.id]?.description?.preference = view.preference
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
        members[member.session]?.unwanted.remove(track.id)
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
        members[member.session]?.allVideoPaused = paused
        for id in member.subscriptions where subscriptions[id]?.kind == .video {
            updatePause(id, &turn)
            subscriptionChanged(id, &turn)
        }
    }

    /// No video from now on, or an upgrade by renegotiation.
    private mutating func setAudioOnly(_ member: Member, _ enabled: Bool, _ turn: inout RoomTurn) {
        members[member.session]?.options.audioOnly = enabled || policy.audioOnly
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
    init(_ subscription: Subscription) {
        self.init()
        preference = subscription.preference
        display = subscription.display
        isPaused = subscription.paused
    }
}

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
            let subscription = try subscription(of: member, to: track)
            guard subscription.slot == nil else { throw RoomError(.invalidRequest, "this section follows somebody") }
            if let id = subscription.track { members[session]?.unwanted.insert(id) }
            endSubscription(subscription.id, tells: true, &turn)
            if subscription.kind == .video { fillVideoSlots(&turn) }
        case .setAutoSubscribe(let enabled):
            members[session]?.options.autoSubscribe = enabled && member.profile != .publishOnly
            subscribeToAll(session, quietly: false, &turn)
            requestOffer(session)
        case .setPaused(let track, let paused):
            let subscription = try subscription(of: member, to: track)
            guard subscription.paused != paused else { return }
            subscriptions[subscription.id]?.paused = paused
            updatePause(subscription.id, &turn)
            subscriptionChanged(subscription.id, &turn)
        case .setPreference(let track, let preference):
            let subscription = try subscription(of: member, to: track)
            guard subscription.preference != preference else { return }
            subscriptions[subscription.id]?.preference = preference
            if subscription.description != nil {
                subscriptions[subscription.id]?.description?.preference = preference
                turn.media(.setLayerPreference(subscription.id, preference))
            }
            subscriptionChanged(subscription.id, &turn)
        case .pauseAllVideo(let paused): pauseAllVideo(member, paused, &turn)
        case .setAudioOnly(let enabled): setAudioOnly(member, enabled, &turn)
        case .requestKeyframe(let track):
            if let id = try subscription(of: member, to: track).track { turn.media(.requestKeyframe(id)) }
        default: break
        }
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
            throw RoomError(.permissionDenied, "no video in this room")
        }
        try checkSubscription(member, track)
        subscribe(member.session, to: track.id, quietly: false, &turn)
    }

    /// C10: one message stops all video, and one lets it go on where it was.
    private mutating func pauseAllVideo(_ member: Member, _ paused: Bool, _ turn: inout RoomTurn) {
        guard member.allVideoPaused != paused else { return }
        members[member.session]?.allVideoPaused = paused
        for id in member.subscriptions where subscriptions[id]?.kind == .video {
            updatePause(id, &turn)
            subscriptionChanged(id, &turn)
        }
    }

    /// C7: no video from now on, or an upgrade by renegotiation.
    private mutating func setAudioOnly(_ member: Member, _ enabled: Bool, _ turn: inout RoomTurn) {
        members[member.session]?.options.audioOnly = enabled || policy.audioOnly
        if enabled {
            for id in member.subscriptions where subscriptions[id]?.kind == .video && subscriptions[id]?.slot == nil {
                endSubscription(id, tells: true, &turn)
            }
        } else {
            subscribeToAll(member.session, quietly: false, &turn)
        }
    }
}

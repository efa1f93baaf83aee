import MediaControl
import Primitives

// Who receives what. Sections come later: a subscription is `pending` until a description with it was agreed.

extension Room {
    /// A new track: everybody who subscribes automatically gets it, followers may turn to it.
    mutating func offerToSubscribers(_ track: TrackID, _ turn: inout RoomTurn) {
        for session in roster.sessions where wantsAutomatically(session, track) {
            subscribeWhereRoom(session, to: track, quietly: false, &turn)
        }
        follow(&turn)
    }

    /// Subscribes to everything there is, as far as the member wants and may.
    mutating func subscribeToAll(_ session: SessionID, quietly: Bool, _ turn: inout RoomTurn) {
        for publisher in roster.sessions {
            for track in routing.tracks(of: publisher) where wantsAutomatically(session, track) {
                subscribeWhereRoom(session, to: track, quietly: quietly, &turn)
            }
        }
    }

    func wantsAutomatically(_ session: SessionID, _ id: TrackID) -> Bool {
        guard let member = roster[session], member.options.autoSubscribe, !member.unwanted.contains(id),
            let track = routing[id], !(roster[track.publisher]?.isHidden ?? true),
            !(track.info.kind == .video && isAudioOnly(member))
        else { return false }
        return (try? checkSubscription(member, track)) != nil
    }

    /// Whether `member` may receive `track` beside what it already receives.
    func checkSubscription(_ member: Member, _ track: RoomTrack) throws(RoomError) {
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        guard member.permissions.canSubscribe, member.profile != .publishOnly else {
            throw RoomError(.permissionDenied, "not permitted to subscribe")
        }
        guard track.publisher != member.session else {
            throw RoomError(.invalidRequest, "a participant cannot subscribe to its own track")
        }
        guard permits(track, for: member) else {
            throw RoomError(.permissionDenied, "not permitted to subscribe to this track")
        }
        guard routing.subscription(of: member.session, to: track.id) == nil else {
            throw RoomError(.invalidRequest, "already subscribed")
        }
        // Which of many are sent is decided from moment to moment by the worker; of none there is nothing to decide.
        if track.info.kind == .video, settings(of: member).maxVideoSubscriptions?.value == 0 {
            throw RoomError(.limitExceeded, "video subscriptions are not allowed")
        }
    }

    /// Makes a subscription; the caller has checked that it may be.
    mutating func subscribe(_ session: SessionID, to track: TrackID, quietly: Bool, _ turn: inout RoomTurn) {
        guard let kind = routing[track]?.info.kind else { return }
        let id = makeSubscription(session, kind: kind, track: track, slot: nil, &turn)
        outdated.insert(session)
        if !quietly { subscriptionChanged(id, &turn) }
    }

    mutating func makeSubscription(
        _ session: SessionID, kind: MediaKind, track: TrackID?, slot: Int?, _ turn: inout RoomTurn
    ) -> SubscriptionID {
        let ssrc = turn.ssrc { routing.uses($0, member: session) }
        let id = SubscriptionID(nextNumber())
        let sid = turn.sid("SU_")
        let rtxSSRC = kind == .video ? turn.ssrc { $0 == ssrc || routing.uses($0, member: session) } : nil
        routing.insert(
            RoomSubscription(
                id: id, sid: sid, member: session, kind: kind, ssrc: ssrc, rtxSSRC: rtxSSRC, track: track, slot: slot))
        return id
    }

    mutating func endSubscription(_ id: SubscriptionID, notifies: Bool, _ turn: inout RoomTurn) {
        guard let subscription = routing[id] else { return }
        if subscription.description != nil { turn.media(.unsubscribe(id)) }
        if let connection = subscription.connection {
            roster.updateConnection(connection, of: subscription.member) { connection in
                if let mid = subscription.mid { connection.subscriptionByMid[mid] = nil }
                connection.needsOffer = true
            }
            outdated.insert(subscription.member)
        }
        let track = routing.track(of: subscription)?.info.sid
        routing.remove(id)
        waitingTracks.subscriptionEnded(of: subscription.member)
        if notifies {
            roster.notify(subscription.member, .subscriptionEnded(subscription: subscription.sid, track: track), &turn)
        }
    }

    /// A subscription's section must be described anew.
    mutating func renegotiate(_ id: SubscriptionID) {
        guard let subscription = routing[id] else { return }
        if subscription.state == .noCommonCodec { routing.update(id) { $0.state = .pending } }
        if let connection = subscription.connection {
            roster.updateConnection(connection, of: subscription.member) { $0.needsOffer = true }
        }
        outdated.insert(subscription.member)
    }

    /// Paused by its own request or with all video of its member.
    func isPaused(_ subscription: RoomSubscription) -> Bool {
        subscription.paused
            || subscription.kind == .video && (roster[subscription.member]?.allVideoPaused ?? false)
    }

    /// Commands the worker to pause or to go on, where it does not do so yet.
    mutating func updatePause(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = routing[id], let known = subscription.description else { return }
        let paused = isPaused(subscription)
        guard known.paused != paused else { return }
        routing.update(id) { $0.description?.paused = paused }
        turn.media(.setSubscriptionPaused(id, paused))
    }
}

// Automatic subscriptions beyond the limit: they wait, oldest track first, and are made as soon as others end.

extension Room {
    /// Whether the member may have one more subscription.
    func hasRoomForSubscription(_ session: SessionID) -> Bool {
        routing.subscriptionCount(of: session) < context.limits.subscriptionsPerParticipant
    }

    /// Subscribes, or lets the track wait until there is room; the caller has checked that the member wants it and may.
    mutating func subscribeWhereRoom(
        _ session: SessionID, to track: TrackID, quietly: Bool, _ turn: inout RoomTurn
    ) {
        if hasRoomForSubscription(session) {
            subscribe(session, to: track, quietly: quietly, &turn)
        } else {
            waitingTracks.insert(track, for: session)
        }
    }

    /// The member does not want the track `sid` that it waits for; false where it does not wait for it.
    mutating func stopWaiting(_ session: SessionID, for sid: String) -> Bool {
        guard let track = routing.track(sid: sid)?.id, waitingTracks.remove(track, for: session) else { return false }
        roster.update(session) { _ = $0.unwanted.insert(track) }
        return true
    }

    /// The member's preferences have changed: it waits for nothing that it does not want any more.
    mutating func forgetUnwantedWaiting(_ session: SessionID) {
        let wanted = waitingTracks.tracks(for: session).filter { wantsAutomatically(session, $0) }
        waitingTracks.keep(wanted, for: session)
    }

    /// Subscribes to what waits where there is room by now, and notifies members of how many tracks still wait.
    mutating func admitWaiting(_ turn: inout RoomTurn) {
        guard !waitingTracks.isSettled else { return }
        let changed = waitingTracks.takeChanged()
        for session in roster.sessions where changed.contains(session) {
            for track in waitingTracks.tracks(for: session) {
                guard hasRoomForSubscription(session) else { break }
                waitingTracks.take(track, for: session)
                if wantsAutomatically(session, track) { subscribe(session, to: track, quietly: false, &turn) }
            }
            guard let count = waitingTracks.takeNewCount(for: session) else { continue }
            let limit = context.limits.subscriptionsPerParticipant
            roster.notify(session, .subscriptionsWaiting(limit: limit, waiting: count), &turn)
        }
    }
}

import MediaControl
import Primitives
import SDP

// Who receives what. Sections come later: a subscription is `pending` until a description with it was agreed.

extension Room {
    /// A new track: everybody who subscribes automatically gets it, followers may turn to it.
    mutating func offerToSubscribers(_ track: TrackID, _ turn: inout RoomTurn) {
        for session in order where wantsAutomatically(session, track) {
            subscribeWhereRoom(session, to: track, quietly: false, &turn)
        }
        follow(&turn)
    }

    /// Subscribes to everything there is, as far as the member wants and may.
    mutating func subscribeToAll(_ session: SessionID, quietly: Bool, _ turn: inout RoomTurn) {
        for publisher in order {
            for track in members[publisher]?.tracks ?? [] where wantsAutomatically(session, track) {
                subscribeWhereRoom(session, to: track, quietly: quietly, &turn)
            }
        }
    }

    func wantsAutomatically(_ session: SessionID, _ id: TrackID) -> Bool {
        guard let member = members[session], member.options.autoSubscribe, !member.unwanted.contains(id),
            let track = tracks[id], !(members[track.publisher]?.isHidden ?? true),
            !(track.info.kind == .video && member.options.audioOnly)
        else { return false }
        return (try? checkSubscription(member, track)) != nil
    }

    /// Whether `member` may receive `track` beside what it already receives.
    func checkSubscription(_ member: Member, _ track: PublishedTrack) throws(RoomError) {
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        guard member.permissions.canSubscribe, member.profile != .publishOnly else {
            throw RoomError(.permissionDenied, "not permitted to subscribe")
        }
        guard track.publisher != member.session else {
            throw RoomError(.invalidRequest, "a participant cannot subscribe to its own track")
        }
        for id in member.subscriptions where subscriptions[id]?.track == track.id {
            throw RoomError(.invalidRequest, "already subscribed")
        }
        // Which of many are sent is decided from moment to moment by the worker; of none there is nothing to decide.
        if track.info.kind == .video, settings(of: member).maxVideoSubscriptions?.value == 0 {
            throw RoomError(.limitExceeded, "video subscriptions are not allowed")
        }
    }

    /// Makes a subscription; the caller has checked that it may be.
    mutating func subscribe(_ session: SessionID, to track: TrackID, quietly: Bool, _ turn: inout RoomTurn) {
        guard let kind = tracks[track]?.info.kind else { return }
        let id = makeSubscription(session, kind: kind, track: track, slot: nil, &turn)
        requestOffer(session)
        if !quietly { subscriptionChanged(id, &turn) }
    }

    mutating func makeSubscription(
        _ session: SessionID, kind: MediaKind, track: TrackID?, slot: Int?, _ turn: inout RoomTurn
    ) -> SubscriptionID {
        let others = (members[session]?.subscriptions ?? []).compactMap { subscriptions[$0] }
        let ssrc = turn.ssrc { value in others.contains { $0.ssrc == value || $0.rtxSSRC == value } }
        let id = SubscriptionID(nextNumber())
        subscriptions[id] = Subscription(
            id: id, sid: turn.sid("SU_"), member: session, kind: kind, ssrc: ssrc,
            rtxSSRC: kind == .video
                ? turn.ssrc { value in
                    value == ssrc || others.contains { $0.ssrc == value || $0.rtxSSRC == value }
                } : nil,
            track: track, slot: slot)
        members[session]?.subscriptions.append(id)
        if let track { tracks[track]?.subscribers.append(id) }
        return id
    }

    mutating func endSubscription(_ id: SubscriptionID, tells: Bool, _ turn: inout RoomTurn) {
        guard let subscription = subscriptions[id] else { return }
        if subscription.description != nil { turn.media(.unsubscribe(id)) }
        if let name = subscription.connection, let index = members[subscription.member]?.connectionIndex(name) {
            if let mid = subscription.mid {
                members[subscription.member]?.connections[index].subscriptionByMid[mid] = nil
            }
            members[subscription.member]?.connections[index].needsOffer = true
            requestOffer(subscription.member)
        }
        if let track = subscription.track { tracks[track]?.subscribers.removeAll { $0 == id } }
        members[subscription.member]?.subscriptions.removeAll { $0 == id }
        if members[subscription.member]?.waiting.isEmpty == false { changedWaiting.insert(subscription.member) }
        subscriptions[id] = nil
        if tells {
            let track = subscription.track.flatMap { tracks[$0]?.info.sid }
            tell(subscription.member, .subscriptionEnded(subscription: subscription.sid, track: track), &turn)
        }
    }

    /// The member's descriptions no longer tell what it is sent.
    mutating func requestOffer(_ session: SessionID) {
        if awaitingOfferSet.insert(session).inserted { awaitingOffers.append(session) }
    }

    /// A subscription's section must be described anew.
    mutating func renegotiate(_ id: SubscriptionID) {
        guard let subscription = subscriptions[id] else { return }
        if subscription.state == .noCommonCodec { subscriptions[id]?.state = .pending }
        if let name = subscription.connection, let index = members[subscription.member]?.connectionIndex(name) {
            members[subscription.member]?.connections[index].needsOffer = true
        }
        requestOffer(subscription.member)
    }

    /// Paused by its own request or with all video of its member.
    func isPaused(_ subscription: Subscription) -> Bool {
        subscription.paused
            || subscription.kind == .video && (members[subscription.member]?.allVideoPaused ?? false)
    }

    /// Brings the worker's idea of "paused" up to date.
    mutating func updatePause(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = subscriptions[id], let known = subscription.description else { return }
        let paused = isPaused(subscription)
        guard known.paused != paused else { return }
        subscriptions[id]?.description?.paused = paused
        turn.media(.setSubscriptionPaused(id, paused))
    }
}

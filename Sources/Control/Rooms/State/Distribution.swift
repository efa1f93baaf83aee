import MediaControl
import Primitives
import SDP

/// Decides who receives what: makes and ends subscriptions as members prefer and the rules permit, lets tracks wait if there is no room, and switches
/// followers' sections.
///
/// Sections come later: a subscription is `pending` until a description with it has been negotiated.
struct Distribution: Sendable {
    private(set) var waitingTracks = WaitingTracks()
    private(set) var followMode = FollowMode()

    /// Makes the sections of all followers show what they should.
    mutating func follow(_ state: inout RoomState, _ turn: inout RoomTurn) { followMode.follow(&state, &turn) }

    /// The dominant speaker; nil if there has been none for a while.
    mutating func setDominant(_ session: SessionID?, _ state: inout RoomState, _ turn: inout RoomTurn) {
        followMode.setDominant(session, &state, &turn)
    }

    /// A new track: members that subscribe automatically get it, followers may switch to it, and members outside its audience are notified.
    mutating func offer(_ track: TrackID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        for session in state.roster.sessions {
            if state.wantsAutomatically(session, track) {
                subscribeWhereRoom(session, to: track, quietly: false, &state, &turn)
            } else {
                state.announceIfForbidden(track, to: session, &turn)
            }
        }
        followMode.follow(&state, &turn)
    }

    /// Subscribes to all existing tracks that the member wants and may receive.
    mutating func subscribeToAll(_ session: SessionID, quietly: Bool, _ state: inout RoomState, _ turn: inout RoomTurn)
    {
        for publisher in state.roster.sessions {
            for track in state.routing.tracks(of: publisher) where state.wantsAutomatically(session, track) {
                subscribeWhereRoom(session, to: track, quietly: quietly, &state, &turn)
            }
        }
    }

    /// Subscribes, or lets the track wait until there is room; the caller has checked that the member wants it and may.
    private mutating func subscribeWhereRoom(
        _ session: SessionID, to track: TrackID, quietly: Bool, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        if state.hasRoomForSubscription(session) {
            subscribe(session, to: track, quietly: quietly, &state, &turn)
        } else {
            waitingTracks.insert(track, for: session)
        }
    }

    /// Makes a subscription; the caller has checked that it may be.
    private mutating func subscribe(
        _ session: SessionID, to track: TrackID, quietly: Bool, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard let kind = state.routing[track]?.info.kind else { return }
        let id = makeSubscription(session, kind: kind, track: track, slot: nil, &state, &turn)
        state.outdated.insert(session)
        if !quietly { state.subscriptionChanged(id, &turn) }
    }

    private mutating func makeSubscription(
        _ session: SessionID, kind: MediaKind, track: TrackID?, slot: Int?, _ state: inout RoomState,
        _ turn: inout RoomTurn
    ) -> SubscriptionID {
        let ssrc = turn.ssrc { state.routing.uses($0, member: session) }
        let id = SubscriptionID(state.nextNumber())
        let sid = turn.sid("SU_")
        let rtxSSRC = kind == .video ? turn.ssrc { $0 == ssrc || state.routing.uses($0, member: session) } : nil
        var subscription = RoomSubscription(
            id: id, sid: sid, member: session, kind: kind, ssrc: ssrc, rtxSSRC: rtxSSRC, track: track, slot: slot)
        if let view = track.flatMap({ state.removeView(of: $0, for: session) }) { subscription.apply(view) }
        state.routing.insert(subscription)
        return id
    }

    /// Ends a subscription; its section can be used for another.
    mutating func end(_ id: SubscriptionID, notifies: Bool, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let subscription = state.routing[id] else { return }
        if subscription.description != nil { turn.media(.unsubscribe(id)) }
        if let connection = subscription.connection {
            state.roster.updateConnection(connection, of: subscription.member) { connection in
                if let mid = subscription.mid { connection.subscriptionByMid[mid] = nil }
                connection.needsOffer = true
            }
            state.outdated.insert(subscription.member)
        } else if waitingTracks.lacksSections(subscription.member) {
            // It may be one of the subscriptions without a section: they are counted anew.
            state.outdated.insert(subscription.member)
        }
        let track = state.routing.track(of: subscription)?.info.sid
        state.routing.remove(id)
        if let id = subscription.track { state.reviewBackupDemand(of: id, &turn) }
        waitingTracks.subscriptionEnded(of: subscription.member)
        if notifies {
            state.roster.notify(
                subscription.member, .subscriptionEnded(subscription: subscription.sid, track: track), &turn)
        }
    }

    /// The track is about to end: subscriptions to it end, and followers' sections become empty.
    mutating func trackEnds(_ id: TrackID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        for subscription in state.routing.subscribers(of: id) {
            if state.routing[subscription]?.slot != nil {
                followMode.show(TrackID?.none, in: subscription, &state, &turn)
            } else {
                end(subscription, notifies: true, &state, &turn)
            }
        }
        waitingTracks.remove(id)
    }

    /// The member was removed: its waiting tracks are dropped.
    mutating func memberLeft(_ session: SessionID) { waitingTracks.remove(session) }

    /// No video from now on; sections that follow somebody remain and are sent nothing.
    mutating func endVideo(of member: Member, _ state: inout RoomState, _ turn: inout RoomTurn) {
        for id in state.routing.subscriptions(of: member.session) {
            guard let subscription = state.routing[id], subscription.kind == .video, subscription.slot == nil else {
                continue
            }
            end(id, notifies: true, &state, &turn)
        }
    }
}

// MARK: - Tracks that wait

// Automatic subscriptions beyond the limit, and those that LiveKit clients request, wait, oldest track first, and are made as soon as others end.
extension Distribution {
    /// The member does not want the track `sid` that it waits for; false if it does not wait for it.
    private mutating func stopWaiting(_ session: SessionID, for sid: String, _ state: inout RoomState) -> Bool {
        guard let track = state.routing.track(sid: sid)?.id, waitingTracks.remove(track, for: session) else {
            return false
        }
        state.note(track, asUnwantedBy: session)
        return true
    }

    /// The member's preferences have changed: it no longer waits for tracks that it does not want any more.
    mutating func forgetUnwantedWaiting(_ session: SessionID, _ state: RoomState) {
        let wanted = waitingTracks.tracks(for: session).filter { state.wantsAutomatically(session, $0) }
        waitingTracks.keep(wanted, for: session)
    }

    /// Subscribes to waiting tracks for which there is room now.
    mutating func admitWaiting(_ state: inout RoomState, _ turn: inout RoomTurn) {
        guard !waitingTracks.isSettled else { return }
        let changed = waitingTracks.consumeChanged()
        for session in state.roster.sessions where changed.contains(session) {
            for track in waitingTracks.tracks(for: session) {
                guard state.hasRoomForSubscription(session) else { break }
                waitingTracks.dequeue(track, for: session)
                if state.wantsAutomatically(session, track) {
                    subscribe(session, to: track, quietly: false, &state, &turn)
                }
            }
        }
    }

    /// Records how many of the member's subscriptions find no section in its description, which is full.
    mutating func lacksSections(_ count: Int, for session: SessionID) {
        waitingTracks.lacksSections(count, for: session)
    }

    /// Notifies members of how many tracks still wait.
    mutating func announceWaiting(_ state: inout RoomState, _ turn: inout RoomTurn) {
        let counts = waitingTracks.consumeCountChanges()
        guard !counts.isEmpty else { return }
        let limit = state.context.limits.subscriptionsPerParticipant
        for session in state.roster.sessions {
            guard let count = counts[session] else { continue }
            state.roster.notify(session, .subscriptionsWaiting(limit: limit, waiting: count), &turn)
        }
    }
}

// MARK: - Requests of members

extension Distribution {
    /// Requests about what a member receives.
    mutating func perform(
        _ request: SessionRequest, _ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let session = member.session
        switch request {
        case .subscribe(let track): try subscribeByHand(track, member, &state, &turn)
        case .unsubscribe(let track):
            guard !stopWaiting(session, for: track, &state) else { return }
            // The track may not be permitted yet.
            if member.options.awaitsPermission { state.note(try state.track(track).id, asUnwantedBy: session) }
            let subscription = try state.subscription(of: member, to: track)
            guard subscription.slot == nil else {
                throw RoomError(.invalidRequest, "a subscription that follows a participant cannot be ended alone")
            }
            if let id = subscription.track { state.note(id, asUnwantedBy: session) }
            end(subscription.id, notifies: true, &state, &turn)
        case .setAutoSubscribe(let enabled):
            state.roster.update(session) { $0.options.autoSubscribe = enabled && member.profile != .publishOnly }
            subscribeToAll(session, quietly: false, &state, &turn)
            forgetUnwantedWaiting(session, state)
            state.outdated.insert(session)
        case .setPaused(let track, let paused):
            let subscription = try state.subscription(of: member, to: track)
            var view = TrackView(subscription)
            view.isPaused = paused
            setView(view, of: subscription, &state, &turn)
        case .setPreference(let track, let preference):
            let subscription = try state.subscription(of: member, to: track)
            var view = TrackView(subscription)
            view.preference = preference
            setView(view, of: subscription, &state, &turn)
        case .setView(let track, let view):
            setView(view, of: try state.subscription(of: member, to: track), &state, &turn)
        case .setViewInAdvance(let sid, let view):
            let track = try state.track(sid).id
            guard let subscription = state.routing.subscription(of: session, to: track) else {
                return state.keep(view, of: track, for: session)
            }
            setView(view, of: subscription, &state, &turn)
        case .pauseAllVideo(let paused): pauseAllVideo(member, paused, &state, &turn)
        case .setAudioOnly(let enabled): setAudioOnly(member, enabled, &state, &turn)
        case .requestKeyframe(let track):
            let subscription = try state.subscription(of: member, to: track)
            if let id = subscription.encoding { turn.media(.requestKeyframe(id)) }
        default: break
        }
    }

    /// Applies a subscriber's preferences, and reports once what changed.
    private mutating func setView(
        _ view: TrackView, of old: RoomSubscription, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard view != TrackView(old) else { return }
        state.routing.update(old.id) { $0.apply(view) }
        if old.description != nil {
            // A hidden video must not begin with another layer first.
            if view.display != old.display { turn.media(.setDisplayPreference(old.id, view.display)) }
            if view.preference != old.preference {
                state.routing.update(old.id) { $0.description?.preference = view.preference }
                turn.media(.setLayerPreference(old.id, view.preference))
            }
            updatePause(old.id, &state, &turn)
        }
        state.subscriptionChanged(old.id, &turn)
    }

    private mutating func subscribeByHand(
        _ sid: String, _ member: Member, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let track = try state.track(sid)
        state.note(track.id, asAskedForBy: member.session)
        if let existing = try? state.subscription(of: member, to: sid) {
            // Again, because subscriptions that wait for a connection may have one now.
            if existing.state != .active { state.renegotiate(existing.id) }
            return
        }
        guard !(track.info.kind == .video && state.policy.audioOnly) else {
            throw RoomError(.permissionDenied, "the room is audio-only")
        }
        // LiveKit's SDKs assume that a requested track is permitted until the server announces otherwise.
        if member.options.awaitsPermission { state.announceIfForbidden(track.id, to: member.session, &turn) }
        try state.checkSubscription(member, track)
        guard state.hasRoomForSubscription(member.session) else {
            // It comes as soon as there is room, as from LiveKit's server.
            if member.options.awaitsPermission { waitingTracks.insert(track.id, for: member.session) }
            let most = state.context.limits.subscriptionsPerParticipant
            throw RoomError(.limitExceeded, "subscription limit reached (\(most) per participant)")
        }
        subscribe(member.session, to: track.id, quietly: false, &state, &turn)
    }

    /// One message pauses all video, and one resumes it as it was.
    private mutating func pauseAllVideo(
        _ member: Member, _ paused: Bool, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard member.allVideoPaused != paused else { return }
        state.roster.update(member.session) { $0.allVideoPaused = paused }
        for id in state.routing.subscriptions(of: member.session) where state.routing[id]?.kind == .video {
            updatePause(id, &state, &turn)
            state.subscriptionChanged(id, &turn)
        }
    }

    /// No video from now on, or an upgrade by renegotiation.
    private mutating func setAudioOnly(
        _ member: Member, _ enabled: Bool, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        state.roster.update(member.session) { $0.options.audioOnly = enabled }
        if enabled {
            endVideo(of: member, &state, &turn)
            forgetUnwantedWaiting(member.session, state)
        } else {
            subscribeToAll(member.session, quietly: false, &state, &turn)
        }
    }

    /// Commands the worker to pause or to resume, if it does not do so yet.
    private mutating func updatePause(_ id: SubscriptionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let subscription = state.routing[id], let known = subscription.description else { return }
        let paused = state.isPaused(subscription)
        guard known.paused != paused else { return }
        state.routing.update(id) { $0.description?.paused = paused }
        turn.media(.setSubscriptionPaused(id, paused))
    }
}

// MARK: - Who may receive what

extension Distribution {
    /// Sets who may receive the tracks of `session`; nil: everybody.
    mutating func setAudience(
        _ audience: Audience?, of session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) {
        // The maximum number of members; further identities cannot match anybody.
        guard audience?.identityCount ?? 0 <= state.context.limits.participants else {
            throw RoomError(.tooLarge, "the audience has more identities than a room can have participants")
        }
        guard audience?.mostTracks ?? 0 <= state.context.limits.tracksPerParticipant else {
            throw RoomError(.tooLarge, "the audience names more tracks than a participant can publish")
        }
        let former = state.roster[session]?.audience
        guard audience != former else { return }
        state.roster.update(session) { $0.audience = audience }
        for track in state.routing.tracks(of: session) {
            guard let sid = state.routing[track]?.info.sid else { continue }
            for other in state.roster.sessions where other != session {
                guard let identity = state.roster[other]?.info.identity else { continue }
                let isAllowed = audience?.permits(sid, for: identity) ?? true
                guard isAllowed != former?.permits(sid, for: identity) ?? true else { continue }
                state.notify(other, of: track, isAllowed: isAllowed, &turn)
                allow(track, to: other, isAllowed, &state, &turn)
            }
        }
        followMode.follow(&state, &turn)
    }

    /// A track's source has changed; rules may name it, and followers prefer some.
    mutating func sourceChanged(of id: TrackID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let track = state.routing[id], track.main == nil else { return }
        for session in state.roster.sessions {
            guard let member = state.roster[session] else { continue }
            allow(id, to: session, state.permits(track, for: member), &state, &turn)
        }
        followMode.follow(&state, &turn)
    }

    /// A member may receive a track from now on, or no longer may.
    private mutating func allow(
        _ track: TrackID, to session: SessionID, _ isAllowed: Bool, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        if isAllowed {
            guard state.wantsAutomatically(session, track) else { return }
            subscribeWhereRoom(session, to: track, quietly: false, &state, &turn)
        } else if let subscription = state.routing.subscription(of: session, to: track) {
            guard subscription.slot == nil else { return }
            end(subscription.id, notifies: true, &state, &turn)
        } else {
            _ = waitingTracks.remove(track, for: session)
        }
    }

    /// The rules for a member have changed: subscriptions that are no longer permitted end, permitted tracks are subscribed if it subscribes automatically.
    mutating func followRules(of session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let member = state.roster[session] else { return }
        for id in state.routing.subscriptions(of: session) {
            guard let subscription = state.routing[id], subscription.slot == nil,
                let track = state.routing.track(of: subscription), !state.permits(track, for: member)
            else { continue }
            end(id, notifies: true, &state, &turn)
        }
        forgetUnwantedWaiting(session, state)
        subscribeToAll(session, quietly: false, &state, &turn)
        followMode.follow(session, &state, &turn)
    }
}

// MARK: - Sections

extension Distribution {
    /// WHEP: each receiving section follows somebody.
    mutating func makeSlots(
        for outcome: OfferOutcome, _ session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        var next: [MediaKind: Int] = [:]
        for section in outcome.sections where section.remoteReceives && section.refusal == nil {
            guard let kind = MediaKind(section.kind), let member = state.roster[session],
                !(kind == .video && state.isAudioOnly(member)), member.permissions.canSubscribe
            else { continue }
            let slot = next[kind, default: 0]
            next[kind] = slot + 1
            let id = makeSubscription(session, kind: kind, track: nil, slot: slot, &state, &turn)
            if let subscription = state.routing[id] {
                followMode.show(followMode.trackToShow(in: subscription, member, state), in: id, &state, &turn)
            }
        }
    }
}

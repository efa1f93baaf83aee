import MediaControl
import Primitives

/// WHEP's follow mode: sections whose track is switched, without renegotiation, to that of the dominant speaker or of one participant.
struct FollowMode: Sendable {
    /// The dominant speaker, and the one before.
    private var current: SessionID?
    private var previous: SessionID?

    /// Whether this member is the dominant speaker.
    func isDominant(_ session: SessionID) -> Bool { current == session }

    /// The dominant speaker as others may know it; its sid.
    func dominantSpeaker(_ state: RoomState) -> String? {
        current.flatMap { state.roster[$0] }.flatMap { $0.isHidden ? nil : $0.info.sid }
    }

    /// Makes the sections of all followers show what they should.
    mutating func follow(_ state: inout RoomState, _ turn: inout RoomTurn) {
        let followers = state.roster.sessions.filter { state.roster[$0]?.options.follow != nil }
        guard !followers.isEmpty else { return }
        // Searched among all members, so once and not for each follower.
        let speaker = speaker(state)
        for session in followers { follow(session, speaker, &state, &turn) }
    }

    /// Makes the sections of this follower, if it is one, show what they should.
    mutating func follow(_ session: SessionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard state.roster[session]?.options.follow != nil else { return }
        follow(session, speaker(state), &state, &turn)
    }

    private mutating func follow(
        _ session: SessionID, _ speaker: SessionID?, _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard let member = state.roster[session] else { return }
        for id in state.routing.subscriptions(of: session) {
            guard let subscription = state.routing[id], subscription.slot != nil else { continue }
            show(trackToShow(in: subscription, member, speaker, state), in: id, &state, &turn)
        }
    }

    /// Puts a track (nil: none) on a section.
    mutating func show(_ track: TrackID?, in id: SubscriptionID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let subscription = state.routing[id], subscription.track != track else { return }
        state.routing.switch(id, to: track)
        // The codec that was missing was the former track's.
        if subscription.state == .noCommonCodec { state.routing.update(id) { $0.state = .active } }
        if subscription.description != nil {
            let formats = subscription.description?.formats ?? []
            let encoding = state.encoding(of: track, for: formats)
            state.routing.update(id) { $0.description?.track = encoding }
            turn.media(.switchSubscription(id, to: encoding))
        }
        for other in [subscription.track, track] {
            if let other { state.reviewBackupDemand(of: other, &turn) }
        }
        state.subscriptionChanged(id, &turn)
    }

    func trackToShow(in subscription: RoomSubscription, _ member: Member, _ state: RoomState) -> TrackID? {
        trackToShow(in: subscription, member, speaker(state), state)
    }

    private func trackToShow(
        in subscription: RoomSubscription, _ member: Member, _ speaker: SessionID?, _ state: RoomState
    ) -> TrackID? {
        guard member.permissions.canSubscribe, let slot = subscription.slot,
            let target = followed(by: member, speaker, state)
        else { return nil }
        let choices = followable(subscription.kind, of: target, state).filter { id in
            state.routing[id].map { state.permits($0, for: member) } ?? false
        }
        if slot < choices.count { return choices[slot] }
        // A speaker without a camera does not replace the video of the member that was shown before.
        guard member.options.follow == .dominantSpeaker, slot == 0, subscription.kind == .video else { return nil }
        return state.routing.track(of: subscription).flatMap { state.permits($0, for: member) ? $0.id : nil }
    }

    /// The member that a follower follows now.
    private func followed(by follower: Member, _ speaker: SessionID?, _ state: RoomState) -> SessionID? {
        switch follower.options.follow {
        case .none: return nil
        case .identity(let identity):
            return state.roster.sessions(identity: identity).last { state.roster[$0]?.isHidden == false }
        case .dominantSpeaker: return speaker
        }
    }

    /// The member that followers of the dominant speaker follow. Before anybody has spoken, the first member with video.
    private func speaker(_ state: RoomState) -> SessionID? {
        if let current, state.routing.publishes(current) { return current }
        if let previous, state.routing.publishes(previous) { return previous }
        let publishers = state.roster.sessions.filter { session in
            state.routing.publishes(session) && state.roster[session]?.isHidden == false
        }
        return publishers.first { !followable(.video, of: $0, state).isEmpty } ?? publishers.first
    }

    /// A member's tracks of one kind, the most important first: a screen before a camera, a voice before screen audio.
    private func followable(_ kind: MediaKind, of session: SessionID, _ state: RoomState) -> [TrackID] {
        let rank: [TrackSource] =
            kind == .audio ? [.microphone, .screenAudio, .unknown] : [.screen, .camera, .unknown]
        let own = state.routing.tracks(of: session).compactMap { state.routing[$0] }.filter { $0.info.kind == kind }
        return rank.flatMap { source in own.filter { $0.info.source == source }.map(\.id) }
    }

    /// The dominant speaker; nil if there has been none for a while.
    mutating func setDominant(_ session: SessionID?, _ state: inout RoomState, _ turn: inout RoomTurn) {
        let shown = session.flatMap { state.roster[$0]?.isHidden == false ? $0 : nil }
        guard shown != current else { return }
        if let current { previous = current }
        current = shown
        state.roster.notifyAll(.dominantSpeakerChanged(participant: dominantSpeaker(state)), &turn)
        turn.log(.dominantSpeakerChanged(participant: dominantSpeaker(state)))
        follow(&state, &turn)
    }
}

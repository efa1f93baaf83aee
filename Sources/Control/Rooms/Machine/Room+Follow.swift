import MediaControl
import Primitives

// WHEP's follow mode: sections whose track is switched behind them, without renegotiation.

extension Room {
    /// Sections of every follower show what they should.
    mutating func follow(_ turn: inout RoomTurn) {
        for session in roster.sessions {
            guard let member = roster[session], member.options.follow != nil else { continue }
            for id in routing.subscriptions(of: member.session) {
                guard let subscription = routing[id], subscription.slot != nil else { continue }
                show(trackToShow(in: subscription, member), in: id, &turn)
            }
        }
    }

    /// Puts a track (nil: none) behind a section.
    mutating func show(_ track: TrackID?, in id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = routing[id], subscription.track != track else { return }
        routing.switch(id, to: track)
        // The codec that was missing was the former track's.
        if subscription.state == .noCommonCodec { routing.update(id) { $0.state = .active } }
        if subscription.description != nil {
            routing.update(id) { $0.description?.track = track }
            turn.media(.switchSubscription(id, to: track))
        }
        subscriptionChanged(id, &turn)
    }

    func trackToShow(in subscription: RoomSubscription, _ member: Member) -> TrackID? {
        guard let slot = subscription.slot, let target = followed(by: member) else { return nil }
        let choices = followable(subscription.kind, of: target).filter { id in
            routing[id].map { permits($0, for: member) } ?? false
        }
        if slot < choices.count { return choices[slot] }
        // A speaker without a camera does not take the picture away from whoever was shown before.
        guard member.options.follow == .dominantSpeaker, slot == 0, subscription.kind == .video else { return nil }
        return routing.track(of: subscription).flatMap { permits($0, for: member) ? $0.id : nil }
    }

    /// Whom a follower follows now. Before anybody has spoken, the first member with a picture.
    private func followed(by follower: Member) -> SessionID? {
        switch follower.options.follow {
        case .none: return nil
        case .identity(let identity): return roster.session(identity: identity)
        case .dominantSpeaker:
            if let current = dominant.current, routing.publishes(current) { return current }
            if let previous = dominant.previous, routing.publishes(previous) { return previous }
            let publishers = roster.sessions.filter { session in
                routing.publishes(session) && roster[session]?.isHidden == false
            }
            return publishers.first { !followable(.video, of: $0).isEmpty } ?? publishers.first
        }
    }

    /// A member's tracks of one kind, the most telling first: a screen before a camera, a voice before a screen's sound.
    private func followable(_ kind: MediaKind, of session: SessionID) -> [TrackID] {
        let rank: [TrackSource] =
            kind == .audio ? [.microphone, .screenAudio, .unknown] : [.screen, .camera, .unknown]
        let own = routing.tracks(of: session).compactMap { routing[$0] }.filter { $0.info.kind == kind }
        return rank.flatMap { source in own.filter { $0.info.source == source }.map(\.id) }
    }

    /// Who dominates now; nil: nobody has for long.
    mutating func setDominant(_ session: SessionID?, _ turn: inout RoomTurn) {
        let shown = session.flatMap { roster[$0]?.isHidden == false ? $0 : nil }
        guard shown != dominant.current else { return }
        dominant.change(to: shown)
        roster.notifyAll(.dominantSpeakerChanged(participant: dominantSpeaker), &turn)
        turn.log(.dominantSpeakerChanged(participant: dominantSpeaker))
        follow(&turn)
    }
}

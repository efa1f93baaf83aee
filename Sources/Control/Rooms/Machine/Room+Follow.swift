import MediaControl
import Primitives

// WHEP's follow mode: sections whose track is switched behind them, without renegotiation.

extension Room {
    /// Sections of every follower show what they should.
    mutating func follow(_ turn: inout RoomTurn) {
        for session in order {
            guard let member = members[session], member.options.follow != nil else { continue }
            for id in member.subscriptions {
                guard let subscription = subscriptions[id], subscription.slot != nil else { continue }
                show(trackToShow(in: subscription, member), in: id, &turn)
            }
        }
    }

    /// Puts a track (nil: none) behind a section.
    mutating func show(_ track: TrackID?, in id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = subscriptions[id], subscription.track != track else { return }
        if let old = subscription.track { tracks[old]?.subscribers.removeAll { $0 == id } }
        if let track { tracks[track]?.subscribers.append(id) }
        subscriptions[id]?.track = track
        // Of the track before.
        if subscription.state == .noCommonCodec { subscriptions[id]?.state = .active }
        if subscription.description != nil {
            subscriptions[id]?.description?.track = track
            turn.media(.switchSubscription(id, to: track))
        }
        subscriptionChanged(id, &turn)
    }

    func trackToShow(in subscription: Subscription, _ member: Member) -> TrackID? {
        guard let slot = subscription.slot, let target = followed(by: member) else { return nil }
        let choices = followable(subscription.kind, of: target)
        if slot < choices.count { return choices[slot] }
        // A speaker without a camera does not take the picture away from whoever was shown before.
        guard member.options.follow == .dominantSpeaker, slot == 0, subscription.kind == .video else { return nil }
        return subscription.track.flatMap { tracks[$0] == nil ? nil : $0 }
    }

    /// Whom a follower follows now. Before anybody has spoken, the first member with a picture.
    private func followed(by follower: Member) -> SessionID? {
        switch follower.options.follow {
        case .none: return nil
        case .identity(let identity): return sessionByIdentity[identity]
        case .dominantSpeaker:
            if let dominant, members[dominant].map({ !$0.tracks.isEmpty }) == true { return dominant }
            if let lastDominant, members[lastDominant].map({ !$0.tracks.isEmpty }) == true { return lastDominant }
            let publishers = order.filter { session in
                members[session].map { !$0.isHidden && !$0.tracks.isEmpty } ?? false
            }
            return publishers.first { !followable(.video, of: $0).isEmpty } ?? publishers.first
        }
    }

    /// A member's tracks of one kind, the most telling first: a screen before a camera, a voice before a screen's sound.
    private func followable(_ kind: MediaKind, of session: SessionID) -> [TrackID] {
        let rank: [TrackSource] =
            kind == .audio ? [.microphone, .screenAudio, .unknown] : [.screen, .camera, .unknown]
        let own = (members[session]?.tracks ?? []).compactMap { tracks[$0] }.filter { $0.info.kind == kind }
        return rank.flatMap { source in own.filter { $0.info.source == source }.map(\.id) }
    }

    /// Who dominates now; nil: nobody has for long.
    mutating func setDominant(_ session: SessionID?, _ turn: inout RoomTurn) {
        let shown = session.flatMap { members[$0]?.isHidden == false ? $0 : nil }
        guard shown != dominant else { return }
        if let dominant { lastDominant = dominant }
        dominant = shown
        tellRoster(.dominantSpeakerChanged(participant: shown.flatMap { members[$0]?.info.sid }), &turn)
        follow(&turn)
    }
}

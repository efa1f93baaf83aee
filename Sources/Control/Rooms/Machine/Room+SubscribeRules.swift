import Primitives

// Who may receive what, beyond permissions: rules that an operator or a token sets for a participant, and what a publisher says about its own tracks.

extension Room {
    /// What a participant may receive from now on; nil: what its token says, or else the room. What is not permitted ends at once, what is comes at once where the participant
    /// subscribes automatically.
    public mutating func setSubscribeRules(
        _ rules: [SubscribeRule]?, of participant: String, turn: inout RoomTurn
    ) throws(RoomError) {
        let session = try session(named: participant)
        guard (rules?.count ?? 0) <= SubscribeRule.maximumCount else {
            throw RoomError(.tooLarge, "there are more than \(SubscribeRule.maximumCount) subscribe rules")
        }
        roster.update(session) { $0.operatorRules = rules }
        followRules(of: session, &turn)
        makeOffers(&turn)
    }

    /// Who may receive the tracks of `session`; nil: everybody.
    mutating func setAudience(
        _ audience: Audience?, of session: SessionID, _ turn: inout RoomTurn
    ) throws(RoomError) {
        // As many as there can be members; one more can be nobody.
        guard (audience?.count ?? 0) <= context.limits.participants else {
            throw RoomError(.tooLarge, "the audience has more identities than a room can have participants")
        }
        let former = roster[session]?.audience
        roster.update(session) { $0.audience = audience }
        for other in roster.sessions where other != session {
            tell(other, ofTracksOf: session, former, audience, &turn)
            followRules(of: other, &turn)
        }
    }

    /// Which of a publisher's tracks a member may receive from now on, and which not any more.
    private mutating func tell(
        _ other: SessionID, ofTracksOf publisher: SessionID, _ former: Audience?, _ new: Audience?,
        _ turn: inout RoomTurn
    ) {
        guard let member = roster[other], member.permissions.canSubscribe, let owner = roster[publisher],
            !owner.isHidden
        else { return }
        for track in routing.tracks(of: publisher).compactMap({ routing[$0] }) {
            func permits(_ audience: Audience?) -> Bool {
                audience?.permits(track.info.sid, for: member.info.identity) ?? true
            }
            let isAllowed = permits(new)
            guard permits(former) != isAllowed else { continue }
            roster.notify(
                other,
                .trackPermission(participant: owner.info.sid, track: track.info.sid, isAllowed: isAllowed), &turn)
        }
    }

    /// A participant's own rules; nil: those of the room hold for it.
    public func subscribeRules(of session: SessionID) -> [SubscribeRule]? { roster[session]?.subscribeRules }

    /// Whether rules and publisher let `member` receive `track`.
    func permits(_ track: RoomTrack, for member: Member) -> Bool {
        // Of the two layers of rules, the participant's own stand in the place of the room's.
        guard (member.subscribeRules ?? policy.subscribeRules)?.permit(track.info) ?? true else { return false }
        return roster[track.publisher]?.audience?.permits(track.info.sid, for: member.info.identity) ?? true
    }

    mutating func followRules(of session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        for id in routing.subscriptions(of: session) {
            guard let subscription = routing[id], subscription.slot == nil,
                let track = routing.track(of: subscription), !permits(track, for: member)
            else { continue }
            endSubscription(id, notifies: true, &turn)
        }
        forgetUnwantedWaiting(session)
        subscribeToAll(session, quietly: false, &turn)
        follow(&turn)
    }
}

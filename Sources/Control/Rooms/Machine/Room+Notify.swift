import Primitives

// Telling sessions: numbering is gap-free for each, and who is told what is decided here only.

extension Room {
    /// Tells one session, whoever it is.
    mutating func tell(_ session: SessionID, _ event: RoomEvent, _ turn: inout RoomTurn) {
        guard let member = members[session], member.options.isSignalled else { return }
        let sequence = member.sequence + 1
        members[session]?.sequence = sequence
        turn.effects.append(.notify(session, SequencedEvent(sequence: sequence, event: event)))
    }

    /// Tells everybody with a roster about `subject`, and the subject itself where `includingSubject`.
    ///
    /// A hidden subject's events go to nobody but itself.
    mutating func tellAbout(
        _ subject: SessionID, _ event: RoomEvent, includingSubject: Bool, _ turn: inout RoomTurn
    ) {
        let isHidden = members[subject]?.isHidden ?? false
        for session in order {
            if session == subject {
                if includingSubject { tell(session, event, &turn) }
            } else if !isHidden, members[session]?.options.hasRoster == true {
                tell(session, event, &turn)
            }
        }
    }

    /// Tells everybody with a roster.
    mutating func tellRoster(_ event: RoomEvent, _ turn: inout RoomTurn) {
        for session in order where members[session]?.options.hasRoster == true { tell(session, event, &turn) }
    }

    /// The participant changed: a new version, told to all.
    mutating func participantChanged(_ session: SessionID, _ turn: inout RoomTurn) {
        members[session]?.info.version += 1
        guard let info = participant(session) else { return }
        tellAbout(session, .participantUpdated(info), includingSubject: true, &turn)
    }

    /// A track changed: told to all.
    mutating func trackChanged(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = tracks[id] else { return }
        members[track.publisher]?.info.version += 1
        tellAbout(track.publisher, .trackUpdated(track.info), includingSubject: true, &turn)
    }

    /// A subscription changed: told to its owner.
    mutating func subscriptionChanged(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = subscriptions[id] else { return }
        tell(subscription.member, .subscriptionUpdated(info(of: subscription)), &turn)
    }
}

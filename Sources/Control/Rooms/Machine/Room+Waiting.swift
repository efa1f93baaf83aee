import MediaControl
import Primitives

// Automatic subscriptions beyond the limit: they wait, oldest track first, and are made as soon as others end.

extension Room {
    /// Whether the member may have one more subscription.
    func hasRoomForSubscription(_ session: SessionID) -> Bool {
        (members[session]?.subscriptions.count ?? 0) < context.limits.subscriptionsPerParticipant
    }

    /// Subscribes, or lets the track wait until there is room; the caller has checked that the member wants it and may.
    mutating func subscribeWhereRoom(
        _ session: SessionID, to track: TrackID, quietly: Bool, _ turn: inout RoomTurn
    ) {
        if hasRoomForSubscription(session) {
            subscribe(session, to: track, quietly: quietly, &turn)
        } else if members[session]?.waiting.insert(track).inserted == true {
            changedWaiting.insert(session)
        }
    }

    /// Nobody waits for a track that is gone.
    mutating func forgetWaiting(for track: TrackID) {
        for session in order where members[session]?.waiting.remove(track) != nil { changedWaiting.insert(session) }
    }

    /// The member does not want the track `sid` that it waits for; false where it does not wait for it.
    mutating func stopWaiting(_ session: SessionID, for sid: String) -> Bool {
        guard let track = trackBySID[sid], members[session]?.waiting.remove(track) != nil else { return false }
        members[session]?.unwanted.insert(track)
        changedWaiting.insert(session)
        return true
    }

    /// The member's preferences have changed: it waits for nothing that it does not want any more.
    mutating func forgetUnwantedWaiting(_ session: SessionID) {
        guard let waiting = members[session]?.waiting, !waiting.isEmpty else { return }
        let wanted = waiting.filter { wantsAutomatically(session, $0) }
        members[session]?.waiting = wanted
        changedWaiting.insert(session)
    }

    /// Subscribes to what waits where there is room by now, and tells members how many tracks still wait.
    mutating func admitWaiting(_ turn: inout RoomTurn) {
        guard !changedWaiting.isEmpty else { return }
        let changed = changedWaiting
        changedWaiting = []
        for session in order where changed.contains(session) {
            // Numbers are given in the order of publication.
            for track in members[session]?.waiting.sorted() ?? [] {
                guard hasRoomForSubscription(session) else { break }
                members[session]?.waiting.remove(track)
                if wantsAutomatically(session, track) { subscribe(session, to: track, quietly: false, &turn) }
            }
            guard let member = members[session], member.waiting.count != member.toldWaiting else { continue }
            members[session]?.toldWaiting = member.waiting.count
            tell(
                session,
                .subscriptionsWaiting(
                    limit: context.limits.subscriptionsPerParticipant, waiting: member.waiting.count), &turn)
        }
    }
}

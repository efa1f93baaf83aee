import Primitives

/// Tracks that members are to receive as soon as their subscriptions, or the sections of their description, leave room, and the members that may have room now.
struct WaitingTracks: Sendable {
    private struct Queue: Sendable {
        var tracks: Set<TrackID> = []
        /// Subscriptions that exist and for which the member's description has no section left.
        var withoutSection = 0
        /// The count in the last event about them.
        var announcedCount = 0

        var count: Int { tracks.count + withoutSection }
    }

    private var queues: [SessionID: Queue] = [:]
    private var changed: Set<SessionID> = []
    /// Members whose count may have changed.
    private var unannounced: Set<SessionID> = []

    /// Whether nobody's queue has changed since ``consumeChanged()``.
    var isSettled: Bool { changed.isEmpty }

    /// The member's tracks, oldest first: numbers are given in the order of publication.
    func tracks(for session: SessionID) -> [TrackID] { queues[session]?.tracks.sorted() ?? [] }

    mutating func insert(_ track: TrackID, for session: SessionID) {
        if queues[session, default: Queue()].tracks.insert(track).inserted { changed.insert(session) }
    }

    /// Removes it; returns whether the member waited for it.
    @discardableResult
    mutating func remove(_ track: TrackID, for session: SessionID) -> Bool {
        guard queues[session]?.tracks.remove(track) != nil else { return false }
        changed.insert(session)
        return true
    }

    /// The track has ended.
    mutating func remove(_ track: TrackID) {
        for session in queues.keys { remove(track, for: session) }
    }

    /// The member was removed.
    mutating func remove(_ session: SessionID) {
        queues[session] = nil
        changed.remove(session)
        unannounced.remove(session)
    }

    /// The member's preferences have changed: it no longer waits for tracks that it does not want any more.
    mutating func keep(_ wanted: [TrackID], for session: SessionID) {
        guard queues[session]?.tracks.isEmpty == false else { return }
        queues[session]?.tracks = Set(wanted)
        changed.insert(session)
    }

    /// The member is subscribed to it now, or does not want it.
    mutating func dequeue(_ track: TrackID, for session: SessionID) { queues[session]?.tracks.remove(track) }

    /// One of the member's subscriptions has ended.
    mutating func subscriptionEnded(of session: SessionID) {
        if queues[session]?.tracks.isEmpty == false { changed.insert(session) }
    }

    /// Records how many of the member's subscriptions find no section in its description.
    mutating func lacksSections(_ count: Int, for session: SessionID) {
        guard queues[session]?.withoutSection ?? 0 != count else { return }
        queues[session, default: Queue()].withoutSection = count
        unannounced.insert(session)
    }

    /// Whether some of the member's subscriptions found no section at the last count.
    func lacksSections(_ session: SessionID) -> Bool { queues[session].map { $0.withoutSection > 0 } ?? false }

    /// Removes and returns the members whose queue has changed, or may be shortened, since the last call.
    mutating func consumeChanged() -> Set<SessionID> {
        defer { changed = [] }
        unannounced.formUnion(changed)
        return changed
    }

    /// The number of tracks that each member waits for, if it has changed since the last call.
    mutating func consumeCountChanges() -> [SessionID: Int] {
        var counts: [SessionID: Int] = [:]
        for session in unannounced {
            guard let queue = queues[session], queue.count != queue.announcedCount else { continue }
            queues[session]?.announcedCount = queue.count
            counts[session] = queue.count
        }
        unannounced = []
        return counts
    }
}

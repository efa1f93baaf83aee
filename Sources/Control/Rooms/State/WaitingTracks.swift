import Primitives

/// Tracks that members are to receive as soon as their subscriptions leave room, and the members for whom that may be now.
struct WaitingTracks: Sendable {
    private struct Queue: Sendable {
        var tracks: Set<TrackID> = []
        /// The count in the last event about them.
        var announcedCount = 0
    }

    private var queues: [SessionID: Queue] = [:]
    private var changed: Set<SessionID> = []

    /// Whether nobody's queue has changed since ``takeChanged()``.
    var isSettled: Bool { changed.isEmpty }

    /// The member's tracks, oldest first: numbers are given in the order of publication.
    func tracks(for session: SessionID) -> [TrackID] { queues[session]?.tracks.sorted() ?? [] }

    mutating func insert(_ track: TrackID, for session: SessionID) {
        if queues[session, default: Queue()].tracks.insert(track).inserted { changed.insert(session) }
    }

    /// Whether the member waited for it.
    @discardableResult
    mutating func remove(_ track: TrackID, for session: SessionID) -> Bool {
        guard queues[session]?.tracks.remove(track) != nil else { return false }
        changed.insert(session)
        return true
    }

    /// The track is gone.
    mutating func remove(_ track: TrackID) {
        for session in queues.keys { remove(track, for: session) }
    }

    /// The member is gone.
    mutating func remove(_ session: SessionID) {
        queues[session] = nil
        changed.remove(session)
    }

    /// The member's preferences have changed: it waits for nothing that it does not want any more.
    mutating func keep(_ wanted: [TrackID], for session: SessionID) {
        guard queues[session]?.tracks.isEmpty == false else { return }
        queues[session]?.tracks = Set(wanted)
        changed.insert(session)
    }

    /// The member is subscribed to it now, or does not want it.
    mutating func take(_ track: TrackID, for session: SessionID) { queues[session]?.tracks.remove(track) }

    /// One of the member's subscriptions has ended.
    mutating func subscriptionEnded(of session: SessionID) {
        if queues[session]?.tracks.isEmpty == false { changed.insert(session) }
    }

    /// Members whose queue has changed, or may be shortened, since the last call.
    mutating func takeChanged() -> Set<SessionID> {
        defer { changed = [] }
        return changed
    }

    /// How many tracks the member waits for, where that is news to it.
    mutating func takeNewCount(for session: SessionID) -> Int? {
        guard let queue = queues[session], queue.tracks.count != queue.announcedCount else { return nil }
        queues[session]?.announcedCount = queue.tracks.count
        return queue.tracks.count
    }
}

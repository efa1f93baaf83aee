import MediaControl
import Primitives

/// The tracks of one room that may have layers without demand, until these are announced.
struct FadingTracks {
    private var ids: [TrackID] = []

    /// The demand for the track's layers has a deadline from now on.
    mutating func add(_ id: TrackID) { ids.append(id) }

    /// When the first of them is due.
    func nextDeadline(in tables: borrowing Tables) -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for id in ids {
            if let index = tables.trackIndex[id.rawValue] {
                next = min(next, tables.tracks[index].pointee.demand.deadline)
            }
        }
        return next
    }

    /// Removes the tracks that are due, were removed or are in demand again; returns the layers to announce for those that are due.
    mutating func expire(in tables: borrowing Tables, at now: MonotonicTime) -> [(track: Int, layers: UInt8)] {
        guard !ids.isEmpty else { return [] }
        var left: [TrackID] = [], announcements: [(track: Int, layers: UInt8)] = []
        for id in ids {
            guard let index = tables.trackIndex[id.rawValue], !left.contains(id) else { continue }
            let state = tables.tracks[index]
            guard state.pointee.demand.deadline != .distantFuture else { continue }
            guard state.pointee.demand.deadline <= now else {
                left.append(id)
                continue
            }
            let wanted = LayerMask.wanted(ofTrack: index, in: tables)
            if let layers = state.pointee.demand.expire(with: wanted, of: LayerMask.all(of: state.pointee.track)) {
                announcements.append((index, layers))
            }
        }
        ids = left
        return announcements
    }
}

import Synchronization

/// The list of playbacks, for the API and for metrics. Written by the player's thread.
final class PlaybackBooks: Sendable {
    private struct State {
        var summaries: [String: PlaybackSummary] = [:]
        /// The counts of playbacks that have ended.
        var totals = PlayerStatistics()
        /// Files that were opened and are not played yet.
        var opened: [UInt64: OpenedTracks] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// The newest first.
    var all: [PlaybackSummary] {
        state.withLock { $0.summaries.values.sorted { ($0.startedAt, $0.sid) > ($1.startedAt, $1.sid) } }
    }

    subscript(sid: String) -> PlaybackSummary? { state.withLock { $0.summaries[sid] } }

    var statistics: PlayerStatistics {
        state.withLock { state in
            var sum = state.totals
            sum.playbacks = state.summaries.count
            for summary in state.summaries.values {
                sum.packetsSent += summary.tracks.reduce(0) { $0 + UInt64($1.packetsSent) }
                sum.packetsLate += summary.packetsLate
            }
            return sum
        }
    }

    func add(_ summary: PlaybackSummary) { state.withLock { $0.summaries[summary.sid] = summary } }

    /// Does nothing if it has ended.
    func update(_ summary: PlaybackSummary) {
        state.withLock { state in
            if state.summaries[summary.sid] != nil { state.summaries[summary.sid] = summary }
        }
    }

    func end(_ summary: PlaybackSummary) {
        state.withLock { state in
            guard state.summaries.removeValue(forKey: summary.sid) != nil else { return }
            state.totals.packetsSent += summary.tracks.reduce(0) { $0 + UInt64($1.packetsSent) }
            state.totals.packetsLate += summary.packetsLate
        }
    }

    func countFailure() { state.withLock { $0.totals.failures += 1 } }

    // MARK: - Opened files

    /// Stores an opened file under a number; nil if there are already `limit` playbacks and opened files.
    func keep(_ tracks: OpenedTracks, limit: Int) -> UInt64? {
        state.withLock { state in
            guard state.summaries.count + state.opened.count < limit else { return nil }
            state.lastNumber += 1
            state.opened[state.lastNumber] = tracks
            return state.lastNumber
        }
    }

    /// Removes and returns an opened file, to close it or to play it.
    func remove(_ number: UInt64) -> OpenedTracks? { state.withLock { $0.opened.removeValue(forKey: number) } }
}

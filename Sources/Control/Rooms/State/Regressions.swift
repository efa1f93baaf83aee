import Primitives

/// Tracks that all subscribers receive in the backup codec, as their publishers prefer (``BackupCodecPolicy/regression``), until nobody subscribes to them any
/// more.
struct Regressions: Sendable {
    /// Whether its publisher was notified that somebody needs the first codec all the same.
    private var isFirstWanted: [TrackID: Bool] = [:]
    /// Tracks whose subscribers or recordings have changed since they were last checked.
    private var marked: Set<TrackID> = []

    func contains(_ id: TrackID) -> Bool { isFirstWanted[id] != nil }

    /// Whether a track's publisher was asked to send nothing in the first codec.
    func stopsFirstCodec(of id: TrackID) -> Bool { isFirstWanted[id] == false }

    /// The publisher continues with the first codec until it is asked to stop.
    mutating func insert(_ id: TrackID) {
        isFirstWanted[id] = true
        marked.insert(id)
    }

    mutating func remove(_ id: TrackID) {
        isFirstWanted[id] = nil
        marked.remove(id)
    }

    /// true: the publisher must be notified.
    mutating func setFirstCodec(of id: TrackID, isWanted: Bool) -> Bool {
        guard let was = isFirstWanted[id], was != isWanted else { return false }
        isFirstWanted[id] = isWanted
        return true
    }

    mutating func mark(_ id: TrackID) { if contains(id) { marked.insert(id) } }

    mutating func markAll() { marked = Set(isFirstWanted.keys) }

    /// Removes and returns the marked tracks, in order.
    mutating func consumeMarked() -> [TrackID] {
        guard !marked.isEmpty else { return [] }
        defer { marked = [] }
        return marked.sorted()
    }
}

import MediaControl

/// Members whose session descriptions no longer match what they are sent, in the order in which this happened.
struct OutdatedDescriptions: Sendable {
    private var sessions: [SessionID] = []
    private var isListed: Set<SessionID> = []

    mutating func insert(_ session: SessionID) {
        if isListed.insert(session).inserted { sessions.append(session) }
    }

    mutating func remove(_ session: SessionID) {
        if isListed.remove(session) != nil { sessions.removeAll { $0 == session } }
    }

    var isEmpty: Bool { sessions.isEmpty }

    /// Removes and returns at most `count` of them, those that have waited the longest.
    mutating func dequeue(_ count: Int) -> [SessionID] {
        let oldest = Array(sessions.prefix(count))
        sessions.removeFirst(oldest.count)
        isListed.subtract(oldest)
        return oldest
    }
}

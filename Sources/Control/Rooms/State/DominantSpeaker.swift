import MediaControl

/// Who dominates, and who did before.
struct DominantSpeaker: Sendable {
    private(set) var current: SessionID?
    private(set) var previous: SessionID?

    mutating func change(to session: SessionID?) {
        if let current { previous = current }
        current = session
    }
}

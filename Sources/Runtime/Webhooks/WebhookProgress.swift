/// How far the event log has been written to the database, and the callers that wait for it.
struct WebhookProgress {
    /// The maximum number of missing events for which a caller waits: some tenths of a second on a slow disk. With more, a response would be delayed for events
    /// that only the end of the process could lose.
    static let maxMissing: UInt64 = 1_000

    private var isRunning = false
    /// The position of the last event that is written, or that no webhook selects.
    private var reached: UInt64 = 0
    private var waiting: [(position: UInt64, ticket: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    private var lastTicket: UInt64 = 0

    mutating func begin() { isRunning = true }

    mutating func reach(_ position: UInt64) {
        reached = position
        for one in waiting where one.position <= position { one.continuation.resume() }
        waiting.removeAll { $0.position <= position }
    }

    /// No more events are written: nobody waits.
    mutating func end() {
        isRunning = false
        for one in waiting { one.continuation.resume() }
        waiting = []
    }

    /// Whether the event at `position` will be written soon.
    func isWorthWaiting(for position: UInt64) -> Bool {
        isRunning && position > reached && position - reached <= Self.maxMissing
    }

    /// The number by which `giveUp` identifies a caller that is about to wait.
    mutating func ticket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    mutating func wait(for position: UInt64, _ ticket: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
        waiting.append((position, ticket, continuation))
    }

    /// A caller has waited long enough.
    mutating func giveUp(_ ticket: UInt64) {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return }
        waiting.remove(at: index).continuation.resume()
    }
}

import Rooms

/// The mailbox of each session that has, or may again have, a socket.
struct Mailboxes {
    private var mailboxes: [SessionID: SessionMailbox] = [:]

    /// A stream of a session's events, and its number, which identifies a socket.
    struct Opened {
        let events: SessionEvents
        let attachment: UInt64
    }

    /// The mailbox of a new session.
    mutating func open(_ session: SessionID, maxQueued: Int, maxPast: Int) -> Opened {
        mailboxes[session] = SessionMailbox(maxQueued: maxQueued, maxPast: maxPast)
        return reopen(session, after: 0) ?? Opened(events: SessionEvents { $0.finish() }, attachment: 0)
    }

    /// A new stream with the events after `sequence`, replacing the one before; nil if they are no longer kept.
    mutating func reopen(_ session: SessionID, after sequence: UInt64) -> Opened? {
        guard let events = mailboxes[session]?.open(after: sequence) else { return nil }
        return Opened(events: events, attachment: mailboxes[session]?.attachment ?? 0)
    }

    /// Ends the stream of this number; false: it is not the current one.
    mutating func close(_ session: SessionID, attachment: UInt64) -> Bool {
        guard mailboxes[session]?.attachment == attachment else { return false }
        mailboxes[session]?.close()
        return true
    }

    /// Whether the session has a newer stream than the one with this number.
    func hasSuccessor(_ session: SessionID, attachment: UInt64) -> Bool {
        mailboxes[session].map { $0.attachment != attachment } ?? false
    }

    /// Whether a client that has missed events, and gets only the current state, can continue with its connections.
    func knowsConnections(_ session: SessionID) -> Bool { mailboxes[session]?.knowsConnections ?? false }

    /// false: its reader does not keep up, and its stream has ended.
    mutating func deliver(_ event: SequencedEvent, to session: SessionID) -> Bool {
        mailboxes[session]?.deliver(event) ?? true
    }

    /// The participants that left, as far as the session's events are kept.
    func departed(_ session: SessionID) -> [(participant: String, identity: String, reason: LeaveReason)] {
        mailboxes[session]?.departed ?? []
    }

    /// The session has ended; what its stream holds can still be read.
    mutating func remove(_ session: SessionID) {
        mailboxes[session]?.close()
        mailboxes[session] = nil
    }
}

public import Rooms

/// Events of one session in order; ends after `.ended`. One consumer. Ends without `.ended` if another socket resumed
/// the session, or if the reader did not keep up; then the session may be resumed.
public typealias SessionEvents = AsyncStream<SequencedEvent>

/// How a socket came to its session.
public enum SessionStart: Sendable {
    /// The session is new.
    case joined
    /// A join continues a session that was moved without its connections.
    case rejoined
    /// The session had another socket before.
    case resumed
}

/// A successful join: the snapshot is the first message, deltas follow.
public struct JoinedSession: Sendable {
    public let session: SessionID
    public let snapshot: SessionSnapshot
    public let events: SessionEvents
    /// Names this stream of events; for `detach`.
    public let attachment: UInt64
    /// Whether the join began the session, or continued one that was moved here.
    public let start: SessionStart

    init(
        session: SessionID, snapshot: SessionSnapshot, events: SessionEvents, attachment: UInt64,
        start: SessionStart = .joined
    ) {
        self.session = session
        self.snapshot = snapshot
        self.events = events
        self.attachment = attachment
        self.start = start
    }
}

/// A successful resume: events after the last one that the client has, then live ones.
public struct ResumedSession: Sendable {
    public let session: SessionID
    public let events: SessionEvents
    /// Names this stream of events; for `detach`.
    public let attachment: UInt64

    init(session: SessionID, events: SessionEvents, attachment: UInt64) {
        self.session = session
        self.events = events
        self.attachment = attachment
    }
}

/// A WHIP or WHEP session: joined and answered in one step.
public struct ConnectedSession: Sendable {
    public let session: SessionID
    public let room: String
    public let participant: ParticipantInfo
    public let answer: ConnectionAnswer

    init(session: SessionID, room: String, participant: ParticipantInfo, answer: ConnectionAnswer) {
        self.session = session
        self.room = room
        self.participant = participant
        self.answer = answer
    }
}

/// A stay that continues, described anew from the beginning.
public struct ReturnedSession: Sendable {
    public let session: SessionID
    public let snapshot: SessionSnapshot
    /// Participants that left recently, which the client may not know yet: sid, identity and reason.
    public let departed: [(participant: String, identity: String, reason: LeaveReason)]
    /// The number of the last reliable message from the client that arrived; 0: its protocol has no numbers.
    public let lastSequence: UInt32
    /// What happens after the snapshot.
    public let events: SessionEvents
    /// Names this stream of events; for `detach`.
    public let attachment: UInt64

    /// Those ``departed`` that have not come back under another sid: some clients know participants by their identity.
    public var departedForGood: [(participant: String, identity: String, reason: LeaveReason)] {
        let here = Set(([snapshot.participant] + snapshot.others).map(\.identity))
        return departed.filter { !here.contains($0.identity) }
    }
}

public import Rooms

/// Events of one session in order; ends after `.ended`. One consumer. Ends without `.ended` where another socket resumed
/// the session, or where the reader did not keep up; then the session may be resumed.
public typealias SessionEvents = AsyncStream<SequencedEvent>

/// How a socket came to its session.
public enum SessionStart: Sendable {
    /// The session is new.
    case joined
    /// A join goes on with a session that was moved without its connections.
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
    /// The join began the session, or went on with one that was moved here.
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

/// A stay that goes on, told anew from the beginning.
public struct ReturnedSession: Sendable {
    public let session: SessionID
    public let snapshot: SessionSnapshot
    /// Those who left not long ago, whom the client may not know to be gone: sid, identity and why.
    public let departed: [(participant: String, identity: String, reason: LeaveReason)]
    /// The number of the last reliable message that the client sent and that arrived; 0: its protocol counts none.
    public let lastSequence: UInt32
    /// What happens after the snapshot.
    public let events: SessionEvents
    /// Names this stream of events; for `detach`.
    public let attachment: UInt64

    /// Those of ``departed`` who have not come back under another sid: some clients know participants by their identity.
    public var departedForGood: [(participant: String, identity: String, reason: LeaveReason)] {
        let here = Set(([snapshot.participant] + snapshot.others).map(\.identity))
        return departed.filter { !here.contains($0.identity) }
    }
}

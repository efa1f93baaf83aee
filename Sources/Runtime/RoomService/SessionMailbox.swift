import Rooms

/// One session's events on their way to its socket: a bounded stream while there is a socket, and the last events kept for a
/// resume. Never waits for a reader.
struct SessionMailbox {
    private var continuation: SessionEvents.Continuation?
    /// The number of the current stream; grows with each.
    private(set) var attachment: UInt64 = 0
    /// Kept for resume, oldest first.
    private var past: [SequencedEvent] = []
    private var pastBytes = 0
    private var last: UInt64 = 0
    /// The number of events since the stream ended, while there is no other stream.
    private var missed = 0
    /// The reader of this stream was notified that a connection or a channel has ended; whether that arrived is unknown.
    private var hasLostConnection = false
    private let maxQueued: Int
    private let maxPast: Int
    /// Offers are large: this is some ten offers of a full room, or thousands of small events.
    private static let maxPastBytes = 1 << 20
    /// At the maximum length for a socket these are 8 MB.
    private static let maxQueuedMessages = 128

    init(maxQueued: Int, maxPast: Int) {
        self.maxQueued = maxQueued
        self.maxPast = maxPast
    }

    /// A new stream; the one before ends. `since`: with the events after that number; nil if they are no longer kept.
    mutating func open(after sequence: UInt64) -> SessionEvents? {
        guard sequence <= last, sequence == last || (past.first?.sequence ?? .max) <= sequence + 1 else { return nil }
        let missed = past.filter { $0.sequence > sequence }
        continuation?.finish()
        let (stream, continuation) = SessionEvents.makeStream(
            bufferingPolicy: .bufferingOldest(maxQueued + missed.count))
        for event in missed { continuation.yield(event) }
        self.continuation = continuation
        attachment += 1
        (self.missed, hasLostConnection) = (0, false)
        return stream
    }

    /// The participants that left, as far as the events are kept.
    var departed: [(participant: String, identity: String, reason: LeaveReason)] {
        past.compactMap { event in
            guard case .participantLeft(let participant, let identity, let reason) = event.event
            else { return nil }
            return (participant, identity, reason)
        }
    }

    /// Whether a client that gets only the current state can continue with its connections: it was not notified of the end of any, and
    /// the participants that left meanwhile are still known.
    var knowsConnections: Bool { !hasLostConnection && missed <= past.count }

    /// Whether the reader keeps up; false: its stream has ended, and it may resume with another.
    mutating func deliver(_ event: SequencedEvent) -> Bool {
        last = event.sequence
        past.append(event)
        pastBytes += Self.size(of: event)
        while past.count > maxPast || pastBytes > Self.maxPastBytes && past.count > 1 {
            pastBytes -= Self.size(of: past.removeFirst())
        }
        if Self.endsConnection(event) { hasLostConnection = true }
        guard let continuation else {
            missed += 1
            return true
        }
        switch continuation.yield(event) {
        case .dropped: break
        // Messages are long: fewer of them may wait.
        case .enqueued(let remaining) where Self.isMessage(event) && remaining < maxQueued - Self.maxQueuedMessages:
            break
        default: return true
        }
        close()
        return false
    }

    private static func endsConnection(_ event: SequencedEvent) -> Bool {
        switch event.event {
        case .connectionChanged(_, .closed, let reason): reason != LeaveReason.moved.rawValue
        case .channelClosed: true
        default: false
        }
    }

    private static func isMessage(_ event: SequencedEvent) -> Bool {
        if case .messageReceived = event.event { true } else { false }
    }

    /// Ends the stream; what it holds can still be read.
    mutating func close() {
        continuation?.finish()
        continuation = nil
    }

    private static func size(of event: SequencedEvent) -> Int {
        switch event.event {
        case .offer(_, let sdp, _): 256 + sdp.utf8.count
        case .messageReceived(let message): 512 + message.byteCount
        case .relayed(_, _, let payload): 256 + payload.utf8.count
        default: 512
        }
    }
}

import Rooms

/// Events from a place in the log on.
public struct EventFeed: Sendable {
    /// Whether events between the reader's cursor and the first that is told here are no longer kept.
    public var missesEvents: Bool
    /// Those that are kept, then each as it happens. Ends when the server stops, and when the reader does not keep up.
    public var events: AsyncStream<RoomLogEntry>
}

/// Some past events.
public struct EventPage: Sendable {
    /// Whether events between the reader's cursor and the first of these are no longer kept.
    public var missesEvents: Bool
    public var events: [RoomLogEntry]
    /// Where the next page begins.
    public var next: EventCursor
}

/// What happened in rooms, in order, for whoever asks later.
///
/// One log for all rooms with two bounds, a number and a size: a busy room pushes older events of others out. Who must not miss any follows
/// ``RoomService/follow(room:after:)`` or has a webhook.
struct EventLog {
    /// Events that wait for one reader beside those that it missed; more end its stream.
    static let maxQueued = 1_000
    /// What the kept events may take together. Most have a few hundred bytes; a participant's metadata may have many.
    static let maxBytes = 64 << 20

    private struct Reader {
        let room: String?
        let continuation: AsyncStream<RoomLogEntry>.Continuation
    }

    private let epoch: String
    private let maxEntries: Int
    /// Oldest first, from `head` on.
    private var entries: [RoomLogEntry] = []
    private var head = 0
    private var bytes = 0
    private var last: UInt64 = 0
    private var readers: [UInt64: Reader] = [:]
    private var lastReader: UInt64 = 0
    private var isClosed = false

    /// An empty log of one life of the server.
    init(epoch: String, maxEntries: Int) {
        self.epoch = epoch
        self.maxEntries = max(1, maxEntries)
    }

    /// Adds an event and tells it to its readers.
    mutating func append(
        room: String, roomSID: String, sequence: UInt64, at: Int64, _ event: RoomLogEvent
    ) -> RoomLogEntry {
        last += 1
        let entry = RoomLogEntry(
            cursor: EventCursor(epoch: epoch, position: last), room: room, roomSID: roomSID, sequence: sequence, at: at,
            event: event)
        entries.append(entry)
        bytes += Self.size(of: event)
        while entries.count - head > maxEntries || bytes > Self.maxBytes && entries.count - head > 1 { forgetOldest() }
        for (id, reader) in readers where reader.room == nil || reader.room == room {
            if case .dropped = reader.continuation.yield(entry) { endFollowing(id) }
        }
        return entry
    }

    private mutating func forgetOldest() {
        bytes -= Self.size(of: entries[head].event)
        head += 1
        guard head > maxEntries / 2 else { return }
        entries.removeFirst(head)
        head = 0
    }

    /// Everything after `cursor` and what comes; without a cursor what comes. `onEnd` is told the number of a reader that is gone.
    mutating func follow(
        room: String?, after cursor: EventCursor?, onEnd: @escaping @Sendable (UInt64) -> Void
    ) -> EventFeed {
        let missed = cursor.map { kept(after: $0, room: room) }
        let (stream, continuation) = AsyncStream<RoomLogEntry>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maxQueued + (missed?.events.count ?? 0)))
        for entry in missed?.events ?? [] { continuation.yield(entry) }
        guard !isClosed else {
            continuation.finish()
            return EventFeed(missesEvents: missed?.missesEvents ?? false, events: stream)
        }
        lastReader += 1
        let id = lastReader
        continuation.onTermination = { _ in onEnd(id) }
        readers[id] = Reader(room: room, continuation: continuation)
        return EventFeed(missesEvents: missed?.missesEvents ?? false, events: stream)
    }

    /// One reader's stream ends.
    mutating func endFollowing(_ id: UInt64) { readers.removeValue(forKey: id)?.continuation.finish() }

    /// No further events come: all streams end, those that are asked for later behind what is kept.
    mutating func close() {
        isClosed = true
        for reader in readers.values { reader.continuation.finish() }
        readers = [:]
    }

    /// At most `limit` events after `cursor`.
    func page(room: String?, after cursor: EventCursor, limit: Int) -> EventPage {
        let (missesEvents, all) = kept(after: cursor, room: room)
        let events = Array(all.prefix(limit))
        // A room without further events is caught up with everything that happened in others.
        let next = all.count > limit ? events.last?.cursor : EventCursor(epoch: epoch, position: last)
        return EventPage(missesEvents: missesEvents, events: events, next: next ?? cursor)
    }

    private func kept(after cursor: EventCursor, room: String?) -> (
        missesEvents: Bool, events: ArraySlice<RoomLogEntry>
    ) {
        let first = last - UInt64(entries.count - head) + 1
        let isOurs = cursor.epoch == epoch && cursor.position <= last
        let position = isOurs ? cursor.position : 0
        let missesEvents = cursor == .beginning ? first > 1 : !isOurs || position + 1 < first
        let start = head + Int(max(position + 1, first) - first)
        let tail = entries[start...]
        return (missesEvents, room.map { room in ArraySlice(tail.filter { $0.room == room }) } ?? tail)
    }

    private static func size(of event: RoomLogEvent) -> Int {
        switch event {
        case .participantJoined(let info), .participantUpdated(let info), .participantLeft(let info, _, _):
            1_024 + info.metadata.utf8.count
        case .iceFailed: 1_024
        default: 512
        }
    }
}

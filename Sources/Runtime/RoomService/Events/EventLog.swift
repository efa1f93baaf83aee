import AccessTokens
import Rooms

/// Events from a position in the log on.
public struct EventFeed: Sendable {
    /// The start: a reader that has received no event yet continues after this position.
    public var start: EventCursor
    /// Whether events between the reader's cursor and the first one here are no longer kept.
    public var missesEvents: Bool
    /// The kept events, then each as it happens. Ends when the server stops, when the reader does not keep up, and when its token is no longer valid.
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

/// The events of rooms, in order, for later readers.
///
/// One log for all rooms with two limits, a number and a size. A busy room pushes out older events of others, but the last ones of each room are set aside for
/// readers of that room (``SpareEvents``). A reader that must not miss any follows ``RoomService/follow(room:after:)`` or has a webhook.
struct EventLog {
    /// Events that may wait for one reader besides those that it missed; more end its stream.
    static let maxQueued = 1_000
    /// The total size of the kept events. Most have a few hundred bytes; a participant's metadata may have many.
    static let maxBytes = 64 << 20

    private struct Reader {
        let room: String?
        /// nil: all.
        let types: Set<RoomLogEventType>?
        /// The token that permits the reader to read; nil: the server itself reads.
        let bearer: AccessClaims?
        let continuation: AsyncStream<RoomLogEntry>.Continuation
    }

    private let epoch: String
    private let maxEntries: Int
    /// Oldest first, from `head` on.
    private var entries: [RoomLogEntry] = []
    private var head = 0
    /// The size of the kept events and of those set aside.
    private var bytes = 0
    private var spare: SpareEvents
    /// The events that are no longer in `entries`.
    private var left = ForgottenEvents()
    /// The number of `entries` of each room.
    private var counts: [String: Int] = [:]
    /// The position of the last event.
    private(set) var last: UInt64 = 0
    private var readers: [UInt64: Reader] = [:]
    private var lastReader: UInt64 = 0
    private var isClosed = false

    /// An empty log of one run of the server.
    init(epoch: String, maxEntries: Int) {
        self.epoch = epoch
        self.maxEntries = max(1, maxEntries)
        spare = SpareEvents(maxEntries: max(1, maxEntries / 2))
    }

    /// Adds an event and sends it to its readers.
    mutating func append(
        room: String, roomSID: String, sequence: UInt64, at: Int64, _ event: RoomLogEvent
    ) -> RoomLogEntry {
        last += 1
        let entry = RoomLogEntry(
            cursor: EventCursor(epoch: epoch, position: last), room: room, roomSID: roomSID, sequence: sequence, at: at,
            event: event)
        entries.append(entry)
        counts[room, default: 0] += 1
        bytes += Self.size(of: event)
        while entries.count - head > maxEntries { setOldestAside() }
        for forgotten in spare.trim(room, keeping: SpareEvents.eventsPerRoom - (counts[room] ?? 0)) {
            bytes -= Self.size(of: forgotten.event)
        }
        while bytes > Self.maxBytes, entries.count - head > 1 {
            if let forgotten = spare.forgetOldest() {
                bytes -= Self.size(of: forgotten.event)
            } else {
                let oldest = removeOldest()
                bytes -= Self.size(of: oldest.event)
                spare.note(forgotten: oldest)
            }
        }
        for (id, reader) in readers where entry.isOf(reader.room, reader.types) {
            if case .dropped = reader.continuation.yield(entry) { endFollowing(id) }
        }
        return entry
    }

    /// The oldest event makes room; it is set aside if it is among the last of its room.
    private mutating func setOldestAside() {
        let oldest = removeOldest()
        let newer = counts[oldest.room] ?? 0
        guard newer < SpareEvents.eventsPerRoom else {
            bytes -= Self.size(of: oldest.event)
            return spare.note(forgotten: oldest)
        }
        for forgotten in spare.add(oldest) { bytes -= Self.size(of: forgotten.event) }
    }

    private mutating func removeOldest() -> RoomLogEntry {
        let oldest = entries[head]
        let count = (counts[oldest.room] ?? 1) - 1
        counts[oldest.room] = count > 0 ? count : nil
        left.note(oldest.event.type, at: oldest.cursor.position)
        head += 1
        if head > maxEntries / 2 {
            entries.removeFirst(head)
            head = 0
        }
        return oldest
    }

    /// All events after `cursor` and future ones; without a cursor, only future ones. `onEnd` gets the number of a reader whose stream has ended. nil `types`:
    /// all.
    mutating func follow(
        room: String?, types: Set<RoomLogEventType>? = nil, after cursor: EventCursor?, bearer: AccessClaims? = nil,
        onEnd: @escaping @Sendable (UInt64) -> Void
    ) -> EventFeed {
        let missed = cursor.map { kept(after: $0, room: room, types: types) }
        let start = start(after: cursor)
        let (stream, continuation) = AsyncStream<RoomLogEntry>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maxQueued + (missed?.events.count ?? 0)))
        for entry in missed?.events ?? [] { continuation.yield(entry) }
        guard !isClosed else {
            continuation.finish()
            return EventFeed(start: start, missesEvents: missed?.missesEvents ?? false, events: stream)
        }
        lastReader += 1
        let id = lastReader
        continuation.onTermination = { _ in onEnd(id) }
        readers[id] = Reader(room: room, types: types, bearer: bearer, continuation: continuation)
        return EventFeed(start: start, missesEvents: missed?.missesEvents ?? false, events: stream)
    }

    /// Without a cursor, the end of the log; with one of another run of the server, which means nothing here, its beginning.
    private func start(after cursor: EventCursor?) -> EventCursor {
        guard let cursor else { return EventCursor(epoch: epoch, position: last) }
        return isOurs(cursor) ? cursor : EventCursor(epoch: epoch, position: 0)
    }

    private func isOurs(_ cursor: EventCursor) -> Bool { cursor.epoch == epoch && cursor.position <= last }

    /// One reader's stream ends.
    mutating func endFollowing(_ id: UInt64) { readers.removeValue(forKey: id)?.continuation.finish() }

    /// Ends the streams whose tokens are no longer valid according to `isOutdated`.
    mutating func endFollowing(where isOutdated: (AccessClaims) -> Bool) {
        let ending = readers.filter { $0.value.bearer.map(isOutdated) ?? false }.keys
        for id in ending { endFollowing(id) }
    }

    /// No more events follow: all streams end, those that are opened later after the kept events.
    mutating func close() {
        isClosed = true
        for reader in readers.values { reader.continuation.finish() }
        readers = [:]
    }

    /// At most `limit` events after `cursor`. nil `types`: all.
    func page(
        room: String?, types: Set<RoomLogEventType>? = nil, after cursor: EventCursor, limit: Int
    ) -> EventPage {
        let (missesEvents, found) = kept(after: cursor, room: room, types: types)
        let events = Array(found.prefix(limit))
        // A room without further events is up to date with everything that happened in others.
        let next = found.count > limit ? events.last?.cursor : EventCursor(epoch: epoch, position: last)
        return EventPage(missesEvents: missesEvents, events: events, next: next ?? cursor)
    }

    private func kept(after cursor: EventCursor, room: String?, types: Set<RoomLogEventType>?) -> (
        missesEvents: Bool, events: ArraySlice<RoomLogEntry>
    ) {
        let first = last - UInt64(entries.count - head) + 1
        let isOurs = isOurs(cursor)
        let position = isOurs ? cursor.position : 0
        // The last position that is missing for this reader; events that its filter excludes are not missing.
        let missing = room.map { spare.lastForgotten(of: $0, types: types) } ?? left.lastPosition(of: types)
        let missesEvents = cursor == .beginning ? missing > 0 : !isOurs || position < missing
        let start = head + Int(max(position + 1, first) - first)
        let tail = entries[start...]
        if room == nil, types == nil { return (missesEvents, tail) }
        let aside = room.map { spare.events(of: $0).filter { $0.cursor.position > position } } ?? []
        return (missesEvents, ArraySlice((aside + tail).filter { $0.isOf(room, types) }))
    }

    private static func size(of event: RoomLogEvent) -> Int {
        switch event {
        case .participantJoined(let info), .participantUpdated(let info), .participantLeft(let info, _, _, _):
            1_024 + info.metadata.utf8.count
        case .iceFailed: 1_024
        default: 512
        }
    }
}

extension RoomLogEntry {
    /// Whether a reader of `room` and `types` gets it; nil: of all.
    fileprivate func isOf(_ room: String?, _ types: Set<RoomLogEventType>?) -> Bool {
        (room == nil || room == self.room) && types?.contains(event.type) != false
    }
}

import Rooms

/// The last events of each room that have left the log for all, so that a busy room does not push a quiet one's history out.
struct SpareEvents {
    /// Of each room, those in the log included: its beginning, who came, and what was done to it, in a quiet room.
    static let eventsPerRoom = 50
    /// Rooms of which it is remembered what is no longer kept; of others the youngest of all that was forgotten stands for theirs.
    private static let maxRooms = 10_000

    private let maxEntries: Int
    /// Oldest first.
    private var rooms: [String: [RoomLogEntry]] = [:]
    private var count = 0
    /// Rooms in the order of their events' positions; those whose event was forgotten meanwhile are passed over.
    private var order: [(position: UInt64, room: String)] = []
    private var head = 0
    /// What is no longer kept of a room.
    private var forgotten: [String: ForgottenEvents] = [:]
    private var forgottenOfOthers = ForgottenEvents()
    /// With so many rooms in `forgotten` those of which nothing is kept go. Twice what was left the last time, so that each event pays for few of them.
    private var sweepsAt = Self.maxRooms + 1

    init(maxEntries: Int) { self.maxEntries = maxEntries }

    func events(of room: String) -> [RoomLogEntry] { rooms[room] ?? [] }

    /// The position up to which events of a room may be missing, of some types or with nil of any; 0: none is.
    func lastForgotten(of room: String, types: Set<RoomLogEventType>?) -> UInt64 {
        (forgotten[room] ?? forgottenOfOthers).lastPosition(of: types)
    }

    /// Sets an event aside that is younger than all others here; returns what is forgotten for it.
    mutating func add(_ entry: RoomLogEntry) -> [RoomLogEntry] {
        rooms[entry.room, default: []].append(entry)
        order.append((entry.cursor.position, entry.room))
        count += 1
        compact()
        // What is forgotten of other rooms from now on is not missing in this one.
        if forgotten[entry.room] == nil {
            forgotten[entry.room] = forgottenOfOthers
            sweep()
        }
        var gone: [RoomLogEntry] = []
        while count > maxEntries, let oldest = forgetOldest() { gone.append(oldest) }
        return gone
    }

    /// Forgets the oldest of a room beyond so many.
    mutating func trim(_ room: String, keeping most: Int) -> [RoomLogEntry] {
        guard let kept = rooms[room], kept.count > max(0, most) else { return [] }
        return (0..<kept.count - max(0, most)).compactMap { _ in forgetFirst(of: room) }
    }

    /// Forgets the oldest of all; nil where there is none.
    mutating func forgetOldest() -> RoomLogEntry? {
        while head < order.count {
            let (position, room) = order[head]
            head += 1
            if head > 1_024, head > order.count / 2 {
                order.removeFirst(head)
                head = 0
            }
            if rooms[room]?.first?.cursor.position == position { return forgetFirst(of: room) }
        }
        return nil
    }

    /// Events that were trimmed leave their places in the order behind; these go once they are the most.
    private mutating func compact() {
        guard order.count - head > 2 * count + 1_024 else { return }
        order = rooms.values.joined().map { (position: $0.cursor.position, room: $0.room) }
            .sorted { $0.position < $1.position }
        head = 0
    }

    /// Places in the order of events, for tests of its bound.
    var orderLength: Int { order.count }

    /// An event is no longer kept.
    mutating func note(forgotten entry: RoomLogEntry) {
        let others = forgottenOfOthers
        forgotten[entry.room, default: others].note(entry.event.type, at: entry.cursor.position)
        sweep()
    }

    private mutating func forgetFirst(of room: String) -> RoomLogEntry? {
        guard let first = rooms[room]?.removeFirst() else { return nil }
        if rooms[room]?.isEmpty == true { rooms[room] = nil }
        count -= 1
        note(forgotten: first)
        return first
    }

    private mutating func sweep() {
        guard forgotten.count >= sweepsAt else { return }
        // Rooms of which nothing is kept here; their readers may be told of a gap that they do not have, and never the reverse.
        for (name, events) in forgotten where rooms[name] == nil {
            forgottenOfOthers.formUnion(events)
            forgotten[name] = nil
        }
        sweepsAt = max(Self.maxRooms, 2 * forgotten.count) + 1
    }
}

import Rooms

/// The last events of each room that have left the common log, so that a busy room does not push out a quiet one's history.
struct SpareEvents {
    /// For each room, including those in the log: its beginning, who joined, and what was done to it, if the room is quiet.
    static let eventsPerRoom = 50
    /// Rooms for which the positions of removed events are known; for others, the newest removed event of all rooms counts.
    private static let maxRooms = 10_000

    private let maxEntries: Int
    /// Oldest first.
    private var rooms: [String: [RoomLogEntry]] = [:]
    private var count = 0
    /// Rooms in the order of their events' positions; those whose event was removed meanwhile are skipped.
    private(set) var order: [(position: UInt64, room: String)] = []
    private var head = 0
    /// The removed events of a room.
    private var forgotten: [String: ForgottenEvents] = [:]
    private var forgottenOfOthers = ForgottenEvents()
    /// At this many rooms in `forgotten`, those without kept events are removed. Twice the number that was left the last time, so that each event pays for few
    /// of them.
    private var sweepsAt = Self.maxRooms + 1

    init(maxEntries: Int) { self.maxEntries = maxEntries }

    func events(of room: String) -> [RoomLogEntry] { rooms[room] ?? [] }

    /// The position up to which events of a room may be missing, of some types or, with nil, of any; 0: none is.
    func lastForgotten(of room: String, types: Set<RoomLogEventType>?) -> UInt64 {
        (forgotten[room] ?? forgottenOfOthers).lastPosition(of: types)
    }

    /// Sets aside an event that is newer than all others here; returns the events that are removed for it.
    mutating func add(_ entry: RoomLogEntry) -> [RoomLogEntry] {
        rooms[entry.room, default: []].append(entry)
        order.append((entry.cursor.position, entry.room))
        count += 1
        compact()
        // Events of other rooms that are removed from now on are not missing in this one.
        if forgotten[entry.room] == nil {
            forgotten[entry.room] = forgottenOfOthers
            sweep()
        }
        var gone: [RoomLogEntry] = []
        while count > maxEntries, let oldest = forgetOldest() { gone.append(oldest) }
        return gone
    }

    /// Removes the oldest events of a room beyond this many.
    mutating func trim(_ room: String, keeping most: Int) -> [RoomLogEntry] {
        guard let kept = rooms[room], kept.count > max(0, most) else { return [] }
        return (0..<kept.count - max(0, most)).compactMap { _ in forgetFirst(of: room) }
    }

    /// Removes the oldest of all; nil if there is none.
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

    /// Removed events leave their places in the order behind; these are cleared when they are the majority.
    private mutating func compact() {
        guard order.count - head > 2 * count + 1_024 else { return }
        order = rooms.values.joined().map { (position: $0.cursor.position, room: $0.room) }
            .sorted { $0.position < $1.position }
        head = 0
    }

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
        // Rooms without kept events here. Their readers may be notified of a gap that they do not have, but are always notified of one that they have.
        for (name, events) in forgotten where rooms[name] == nil {
            forgottenOfOthers.formUnion(events)
            forgotten[name] = nil
        }
        sweepsAt = max(Self.maxRooms, 2 * forgotten.count) + 1
    }
}

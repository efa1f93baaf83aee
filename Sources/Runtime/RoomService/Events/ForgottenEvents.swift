import Rooms

/// For each type of event, the position of the last one that is no longer kept: a reader of some types misses nothing if only others were removed.
struct ForgottenEvents {
    /// In the order in which the types were first removed. Few types happen in a room, so they are searched one by one.
    private var last: [(type: RoomLogEventType, position: UInt64)] = []

    /// The position of the last removed event of `types`, or, with nil, of any; 0: none was removed.
    func lastPosition(of types: Set<RoomLogEventType>?) -> UInt64 {
        last.reduce(0) { types?.contains($1.type) == false ? $0 : max($0, $1.position) }
    }

    /// An event of `type` is no longer kept.
    mutating func note(_ type: RoomLogEventType, at position: UInt64) {
        if let index = last.firstIndex(where: { $0.type == type }) {
            last[index].position = max(last[index].position, position)
        } else {
            last.append((type, position))
        }
    }

    /// Adds the removed events of other rooms.
    mutating func formUnion(_ other: ForgottenEvents) {
        for (type, position) in other.last { note(type, at: position) }
    }
}

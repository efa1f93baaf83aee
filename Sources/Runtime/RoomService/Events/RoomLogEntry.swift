public import Rooms

/// What happened in a room, with its place in the order of things.
public struct RoomLogEntry: Sendable, Hashable {
    /// Its place among the events of all rooms: where a reader goes on after it.
    public var cursor: EventCursor
    /// Empty: it concerns the server, not one room.
    public var room: String
    /// `RM_…`, one a life of the room; empty as `room`.
    public var roomSID: String
    /// Its gap-free number in the life of the room, or of the server; the first has number 1.
    public var sequence: UInt64
    /// Milliseconds since 1970.
    public var at: Int64
    public var event: RoomLogEvent

    /// Whether it concerns the server rather than one room.
    public var concernsServer: Bool { roomSID.isEmpty }

    /// `event` in `room`.
    public init(
        cursor: EventCursor = .beginning, room: String, roomSID: String, sequence: UInt64, at: Int64,
        event: RoomLogEvent
    ) {
        self.cursor = cursor
        self.room = room
        self.roomSID = roomSID
        self.sequence = sequence
        self.at = at
        self.event = event
    }
}

/// A place in the event log of one life of the server, as text `EPOCH-POSITION`.
public struct EventCursor: Sendable, Hashable {
    /// Before everything that is kept; as text `0`.
    public static let beginning = EventCursor(epoch: "", position: 0)

    /// Which life of the server; positions of another one mean nothing in this.
    let epoch: String
    /// Counts the events of all rooms, gap-free from 1.
    public let position: UInt64

    init(epoch: String, position: UInt64) {
        self.epoch = epoch
        self.position = position
    }

    /// The cursor that `text` shows; nil when it is none.
    public init?(text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        if text == "0" {
            self = .beginning
        } else if parts.count == 2, Self.isEpoch(parts[0]), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let position = UInt64(parts[1])
        {
            self.init(epoch: String(parts[0]), position: position)
        } else {
            return nil
        }
    }

    /// The text that `init(text:)` reads.
    public var text: String { self == .beginning ? "0" : "\(epoch)-\(position)" }

    /// A name for this life of the server.
    static func newEpoch(using random: inout some RandomNumberGenerator) -> String {
        String(UInt64.random(in: 0..<(1 << 40), using: &random), radix: 36)
    }

    private static func isEpoch(_ text: Substring) -> Bool {
        (1...8).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) }
    }
}

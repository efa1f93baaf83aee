public import Rooms

/// An event of a room, with its position in the log.
public struct RoomLogEntry: Sendable, Hashable {
    /// Its position among the events of all rooms, after which a reader continues.
    public var cursor: EventCursor
    /// Empty: it concerns the server, not one room.
    public var room: String
    /// `RM_…`, one for each life of the room; empty like `room`.
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

/// A position in the event log of one run of the server, as text `EPOCH-POSITION`.
public struct EventCursor: Sendable, Hashable {
    /// Before everything that is kept; as text `0`.
    public static let beginning = EventCursor(epoch: "", position: 0)

    /// Identifies the run of the server; positions of another run mean nothing in this one.
    let epoch: String
    /// Counts the events of all rooms, gap-free from 1.
    public let position: UInt64

    init(epoch: String, position: UInt64) {
        self.epoch = epoch
        self.position = position
    }

    /// The cursor in `text`; nil if it is invalid.
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

    /// An identifier for this run of the server.
    static func newEpoch(using random: inout some RandomNumberGenerator) -> String {
        String(UInt64.random(in: 0..<(1 << 40), using: &random), radix: 36)
    }

    private static func isEpoch(_ text: Substring) -> Bool {
        (1...8).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) }
    }
}

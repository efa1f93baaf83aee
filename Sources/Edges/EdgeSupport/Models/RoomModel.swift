public import Rooms

/// A room as JSON shows it.
public struct RoomModel: Codable, Sendable, Hashable {
    /// `RM_…`.
    public var sid: String
    /// The name by which people join.
    public var name: String
    /// Opaque text.
    public var metadata: String
    /// `routed` or `peerToPeer`.
    public var topology: String
    /// nil: no limit of its own.
    public var maxParticipants: Int?
    /// Who may come in: `open`, `password` or `closed`.
    public var lock: String
    /// Members that others may know about.
    public var participants: Int
    /// Members that publish.
    public var publishers: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64

    /// The model of `info`.
    public init(_ info: RoomInfo) {
        sid = info.sid
        name = info.name
        metadata = info.metadata
        topology = info.topology.rawValue
        maxParticipants = info.maxParticipants
        lock = info.lock.rawValue
        participants = info.participants
        publishers = info.publishers
        createdAt = info.createdAt
    }
}

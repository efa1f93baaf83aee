public import Rooms

/// The rules of a room: what is in force, and what the room's own document says.
public struct RoomRules: Sendable, Hashable {
    /// The room's sid.
    public var room: String
    /// What is in force: the server's defaults below the preset below the room's own document.
    public var policy: RoomPolicy
    /// What the room itself says.
    public var document: PolicyDocument
    /// The preset that the room was created with.
    public var preset: String?
    /// Grows with each change of what is in force.
    public var revision: UInt64
}

public import Rooms

/// The rules of a room: those in force, and those in the room's own document.
public struct RoomRules: Sendable, Hashable {
    /// The room's sid.
    public var room: String
    /// The rules in force: the server's defaults, overridden by the preset, overridden by the room's own document.
    public var policy: RoomPolicy
    /// The room's own document.
    public var document: PolicyDocument
    /// The preset that the room was created with.
    public var preset: String?
    /// Grows with each change of the rules in force.
    public var revision: UInt64
}

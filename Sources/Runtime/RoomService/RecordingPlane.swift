public import Rooms

/// The interface of a recorder to RoomHost.
public protocol RecordingPlane: Sendable {
    /// How many more tracks can be recorded after what was applied so far. Returns at once.
    var admission: RecordingAdmission { get }
    /// Applies a room's decisions, in order and before the worker gets its commands. Returns at once.
    func apply(_ effect: RecordingEffect, room: String, roomSID: String)
}

public import Rooms

/// What RoomHost needs of a recorder.
public protocol RecordingPlane: Sendable {
    /// What can be recorded beside what was applied so far. Returns at once.
    var admission: RecordingAdmission { get }
    /// Takes note of what a room decided, in order and before the worker is commanded. Returns at once.
    func apply(_ effect: RecordingEffect, room: String, roomSID: String)
}

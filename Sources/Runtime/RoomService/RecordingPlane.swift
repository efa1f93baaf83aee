public import Rooms

/// What RoomService needs of a recorder.
public protocol RecordingPlane: Sendable {
    /// Refuses a recording for which there is no room on the disk.
    func admit() throws(RoomError)
    /// Takes note of what a room decided, in order and before the worker is commanded. Returns at once.
    func apply(_ effect: RecordingEffect, room: String, roomSID: String)
}

public import Rooms

/// What RoomService needs of a recorder.
public protocol RecordingPlane: Sendable {
    /// Why nothing further can be recorded now; nil: it can. Returns at once.
    var refusal: RecordingRefusal? { get }
    /// Takes note of what a room decided, in order and before the worker is commanded. Returns at once.
    func apply(_ effect: RecordingEffect, room: String, roomSID: String)
}

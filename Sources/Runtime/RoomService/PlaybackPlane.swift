public import Rooms

/// The interface of a player to RoomHost.
public protocol PlaybackPlane: Sendable {
    /// The playback's participant is in the room, and the worker has its tracks: it begins. Returns at once.
    func begin(_ info: PlaybackInfo, of file: OpenedFile, room: String, roomSID: String, worker: WorkerIndex)
    /// Applies a room's decision. Returns at once.
    func apply(_ effect: PlaybackEffect)
}

/// A file that the player has opened and found playable.
public struct OpenedFile: Sendable {
    /// The player's number for it.
    public let number: UInt64
    /// Its tracks: one of each kind at most.
    public let formats: [PlaybackFormat]

    /// File `number` with `formats`.
    public init(number: UInt64, formats: [PlaybackFormat]) {
        self.number = number
        self.formats = formats
    }
}

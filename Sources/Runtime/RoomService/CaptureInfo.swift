/// A capture as operators see it.
public struct CaptureInfo: Sendable, Hashable {
    /// Why a capture has ended. `rawValue` is the stable word.
    public enum End: String, Sendable, Hashable, CaseIterable {
        /// It reached the requested duration.
        case duration
        /// The file reached the requested size.
        case size
        /// The participant has left the room, or was moved to another one.
        case left
        /// An operator stopped it.
        case stopped
    }

    public var id: String
    public var room: String
    /// The participant's sid.
    public var participant: String
    public var identity: String
    public var keepsPayload: Bool
    /// Milliseconds since 1970.
    public var startedAt: Int64
    public var until: Int64
    public var by: String
    public var packets: Int
    /// Size of the file so far.
    public var bytes: Int
    /// Packets that are missing in the file because there was no room for them.
    public var dropped: UInt64
    /// nil: it is running.
    public var end: End?
}

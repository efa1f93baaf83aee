/// A guest that waits to be admitted to a room.
public struct WaitingGuest: Sendable, Hashable {
    public var identity: String
    public var name: String
    /// Milliseconds since 1970.
    public var since: Int64

    /// A guest.
    public init(identity: String, name: String, since: Int64) {
        self.identity = identity
        self.name = name
        self.since = since
    }
}

public import Rooms

/// A guest who waits to be let into a room, as JSON shows it.
public struct GuestModel: Codable, Sendable, Hashable {
    /// Who it is.
    public var identity: String
    /// What others are shown.
    public var name: String
    /// Milliseconds since 1970.
    public var since: Int64

    /// The model of `guest`.
    public init(_ guest: WaitingGuest) {
        identity = guest.identity
        name = guest.name
        since = guest.since
    }
}

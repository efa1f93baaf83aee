public import Rooms

/// A rule that outlasts rooms, and the process where somebody writes it down: ``RoomHost`` says each as it changes, and is given them back at the
/// next start.
public enum StandingRule: Sendable, Hashable {
    /// A named policy; nil: it was deleted.
    case preset(name: String, PolicyDocument?)
    /// Who may not join a room; nil: the ban has ended.
    case ban(identity: String, room: String, Ban?)
    /// Which tokens are good for nothing; nil: they are again.
    case revocation(Revocations.Subject, Closure?)
    /// Which tokens are no longer good for a room, or for one identity in it; nil: they are again.
    case closure(room: String, identity: String?, Closure?)

    /// Until when somebody is banned, in milliseconds since 1970, and why.
    public struct Ban: Sendable, Hashable {
        public var until: Int64
        public var reason: String

        /// A ban.
        public init(until: Int64, reason: String) {
            self.until = until
            self.reason = reason
        }
    }

    /// From when on tokens must have been issued, in seconds since 1970, and until when that is asked, in milliseconds since 1970.
    public struct Closure: Sendable, Hashable {
        public var issuedAfter: Int64
        public var until: Int64

        /// A closure.
        public init(issuedAfter: Int64, until: Int64) {
            self.issuedAfter = issuedAfter
            self.until = until
        }
    }
}

public import Rooms

/// A rule that outlasts rooms, and the process if it is stored: ``RoomHost`` passes on each change, and gets the rules back at the
/// next start.
public enum StandingRule: Sendable, Hashable {
    /// A named policy; nil: the policy was deleted.
    case preset(name: String, PolicyDocument?)
    /// An identity that may not join a room; nil: the ban has ended.
    case ban(identity: String, room: String, Ban?)
    /// Revoked tokens; nil: the revocation has ended.
    case revocation(Revocations.Subject, Closure?)
    /// Tokens that are no longer valid for a room, or for one identity in it; nil: they are valid again.
    case closure(room: String, identity: String?, Closure?)

    /// Until when an identity is banned, in milliseconds since 1970, and why.
    public struct Ban: Sendable, Hashable {
        public var until: Int64
        public var reason: String

        /// A ban.
        public init(until: Int64, reason: String) {
            self.until = until
            self.reason = reason
        }
    }

    /// The time after which tokens must have been issued, in seconds since 1970, and until when that is required, in milliseconds since 1970.
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

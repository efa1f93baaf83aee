public import AccessTokens
public import Primitives
import Rooms
import Synchronization

/// The revocations in force, for everything that verifies tokens: the rooms change them, every edge queries them.
public final class RevocationList: Sendable {
    private let revocations = Mutex(Revocations())

    /// No revocations yet.
    public init() {}

    /// Whether a token is revoked.
    public func revokes(_ claims: AccessClaims, now: MonotonicTime) -> Bool {
        revocations.withLock { $0.refuse(claims, now: now) }
    }

    func add(
        _ subject: Revocations.Subject, issuedAfter: Int64? = nil, for duration: TimeSpan, turn: RoomTurn
    ) throws(RoomError) -> Revocations.Revocation {
        try revocations.withLock { (list) throws(RoomError) in
            try list.add(subject, issuedAfter: issuedAfter, for: duration, turn: turn)
        }
    }

    func remove(_ subject: Revocations.Subject) throws(RoomError) {
        try revocations.withLock { (list) throws(RoomError) in try list.remove(subject) }
    }

    func list(now: MonotonicTime) -> [Revocations.Revocation] { revocations.withLock { $0.list(now: now) } }
}

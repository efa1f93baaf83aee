public import AccessTokens
public import Primitives

/// Tokens that are no longer valid although they have not expired: one by its id, or all tokens of an identity so far.
public struct Revocations: Sendable {
    /// What was revoked.
    public enum Subject: Sendable, Hashable {
        /// The token with this `jti`.
        case token(String)
        /// Tokens of this identity that were issued until then.
        case identity(String)

        func names(tokenID: String?, identity: String?) -> Bool {
            switch self {
            case .token(let id): id == tokenID
            case .identity(let name): name == identity
            }
        }
    }

    /// One revocation.
    public struct Revocation: Sendable, Hashable {
        public var subject: Subject
        /// Seconds since 1970: tokens of an identity must have been issued later.
        public var issuedAfter: Int64
        /// Milliseconds since 1970.
        public var until: Int64
        /// The same time as `until`, for the check.
        let deadline: MonotonicTime
    }

    private var revocations: [Subject: Revocation] = [:]
    /// With ids of 1 KiB each this is 8 MiB; one more is refused.
    public static let maximumCount = 4_096
    /// A year: longer than a token for a meeting is valid.
    public static let longest = TimeSpan.seconds(366 * 86_400)

    /// No revocations yet.
    public init() {}

    /// Revokes until `now + duration`; replaces an earlier revocation of the same subject.
    @discardableResult
    public mutating func add(
        _ subject: Subject, issuedAfter: Int64? = nil, for duration: TimeSpan, turn: borrowing RoomTurn
    ) throws(RoomError) -> Revocation {
        let (now, wallClock) = (turn.now, turn.wallClock)
        revocations = revocations.filter { now < $0.value.deadline }
        guard revocations[subject] != nil || revocations.count < Self.maximumCount else {
            throw RoomError(.limitExceeded, "the server holds as many revocations as it can; end one first")
        }
        let revocation = Revocation(
            subject: subject, issuedAfter: issuedAfter ?? wallClock / 1_000,
            until: wallClock + duration.nanoseconds / 1_000_000, deadline: now + duration)
        revocations[subject] = revocation
        return revocation
    }

    /// Ends a revocation; `revocation_not_found` if there is none.
    public mutating func remove(_ subject: Subject) throws(RoomError) {
        guard revocations.removeValue(forKey: subject) != nil else {
            throw RoomError(.revocationNotFound, "this was not revoked")
        }
    }

    /// The revocations in force, the latest to end last.
    public func list(now: MonotonicTime) -> [Revocation] {
        revocations.values.filter { now < $0.deadline }.sorted { ($0.until, $0.key) < ($1.until, $1.key) }
    }

    /// Whether a token is revoked. A token of an identity that states neither when it was issued nor from when on it is valid may be of any age.
    public func refuse(_ claims: AccessClaims, now: MonotonicTime) -> Bool {
        guard !revocations.isEmpty else { return false }
        if let id = claims.tokenID, let revocation = revocations[.token(id)], now < revocation.deadline { return true }
        guard let identity = claims.identity, let revocation = revocations[.identity(identity)],
            now < revocation.deadline
        else { return false }
        guard let issued = claims.issuedAt ?? claims.notBefore else { return true }
        return issued <= revocation.issuedAfter
    }
}

extension Revocations.Revocation {
    fileprivate var key: String {
        switch subject {
        case .token(let id): "token \(id)"
        case .identity(let name): "identity \(name)"
        }
    }
}

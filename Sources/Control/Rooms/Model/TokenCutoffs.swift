public import AccessTokens
public import Primitives

/// The time after which tokens must have been issued to be valid for a room that was deleted, or for a participant that was removed.
///
/// A token outlives the room or stay that an operator ends, so without this its bearer would be back at once. A ban, which names a person rather than tokens,
/// and lasts, is in a separate table that is checked at the same place (`RoomHost.admit`).
public struct TokenCutoffs: Sendable {
    /// What was ended: a room, or one identity in it.
    private struct Place: Sendable, Hashable {
        var room: String
        var identity: String?
    }

    private struct Cutoff: Sendable {
        var number: UInt64
        var issuedAfter: Int64
        var until: MonotonicTime
    }

    private var cutoffs: [Place: Cutoff] = [:]
    /// By age, including those that were renewed since.
    private var order: [(place: Place, number: UInt64, until: MonotonicTime)] = []
    private var lastNumber: UInt64 = 0

    /// Some hours of a busy moderator. With names of 1 KiB each this is 8 MiB; beyond it the oldest is forgotten.
    public static let maximumCount = 4_096

    /// None yet.
    public init() {}

    /// The number of cutoffs, for tests of the limit.
    var count: Int { max(cutoffs.count, order.count) }

    /// Tokens for `room` (nil identity: anybody's) that were issued at `second` (since 1970) or before are refused until `until`.
    public mutating func add(room: String, identity: String?, second: Int64, until: MonotonicTime, now: MonotonicTime) {
        let place = Place(room: room, identity: identity)
        lastNumber += 1
        cutoffs[place] = Cutoff(number: lastNumber, issuedAfter: second, until: until)
        order.append((place, lastNumber, until))
        while let oldest = order.first, oldest.until <= now || order.count > Self.maximumCount {
            order.removeFirst()
            if cutoffs[oldest.place]?.number == oldest.number { cutoffs[oldest.place] = nil }
        }
    }

    /// An operator creates the room anew: everybody with a token for it may join again, except participants that were removed.
    /// True: it was closed to some tokens.
    public mutating func reopen(room: String) -> Bool {
        cutoffs.removeValue(forKey: Place(room: room, identity: nil)) != nil
    }

    /// Refuses a token that is too old for `room`.
    public func check(_ claims: AccessClaims, room: String, now: MonotonicTime) throws(RoomError) {
        if refuses(claims, Place(room: room, identity: nil), now) {
            throw RoomError(.roomClosed, "the room was closed after this token was issued; get a new token")
        }
        if let identity = claims.identity, refuses(claims, Place(room: room, identity: identity), now) {
            throw RoomError(
                .participantRemoved, "the participant was removed after this token was issued; get a new token")
        }
    }

    /// Times in tokens are whole seconds, so a token of the same second may be older. Libraries that write no `iat` usually write `nbf`. A token
    /// without either may be of any age.
    private func refuses(_ claims: AccessClaims, _ place: Place, _ now: MonotonicTime) -> Bool {
        guard let cutoff = cutoffs[place], now < cutoff.until else { return false }
        guard let issued = claims.issuedAt ?? claims.notBefore else { return true }
        return issued <= cutoff.issuedAfter
    }
}

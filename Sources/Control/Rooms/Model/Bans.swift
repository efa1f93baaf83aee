public import Primitives

/// Which identities may not join which rooms, and until when. Unlike ``TokenCutoffs``, a ban applies to every token.
public struct Bans: Sendable {
    /// One ban.
    public struct Ban: Sendable, Hashable {
        public var identity: String
        /// Milliseconds since 1970, for display.
        public var until: Int64
        /// The operator's reason; empty if none.
        public var reason: String
        /// The same time as `until`, for the check.
        let deadline: MonotonicTime
    }

    private var bansByRoom: [String: [String: Ban]] = [:]
    private(set) var count = 0
    /// With names and reasons of 1 KiB each this is 8 MiB; one more is refused.
    public static let maximumCount = 4_096
    /// A year: longer than any token for a meeting is valid.
    public static let longest = TimeSpan.seconds(366 * 86_400)

    /// No bans yet.
    public init() {}

    /// Bans `identity` from `room` for `duration`; replaces an earlier ban of the same identity.
    @discardableResult
    public mutating func add(
        _ identity: String, room: String, for duration: TimeSpan, reason: String, turn: borrowing RoomTurn
    ) throws(RoomError) -> Ban {
        forgetExpired(at: turn.now)
        let isNew = bansByRoom[room]?[identity] == nil
        guard !isNew || count < Self.maximumCount else {
            throw RoomError(.limitExceeded, "the server holds as many bans as it can; end one first")
        }
        let ban = Ban(
            identity: identity, until: turn.wallClock + duration.nanoseconds / 1_000_000, reason: reason,
            deadline: turn.now + duration)
        bansByRoom[room, default: [:]][identity] = ban
        if isNew { count += 1 }
        return ban
    }

    /// Ends a ban; `ban_not_found` if there is none.
    public mutating func remove(_ identity: String, room: String, now: MonotonicTime) throws(RoomError) {
        forgetExpired(at: now)
        guard bansByRoom[room]?.removeValue(forKey: identity) != nil else {
            throw RoomError(.banNotFound, "this identity is not banned from the room")
        }
        count -= 1
        if bansByRoom[room]?.isEmpty == true { bansByRoom[room] = nil }
    }

    /// The bans of one room that are in force, by identity.
    public func list(room: String, now: MonotonicTime) -> [Ban] {
        (bansByRoom[room] ?? [:]).values.filter { now < $0.deadline }.sorted { $0.identity < $1.identity }
    }

    /// Refuses an identity that is banned.
    public func check(_ identity: String?, room: String, now: MonotonicTime) throws(RoomError) {
        guard let identity, let ban = bansByRoom[room]?[identity], now < ban.deadline else { return }
        throw RoomError(.banned, ban.reason.isEmpty ? "the participant is banned from this room" : ban.reason)
    }

    private mutating func forgetExpired(at now: MonotonicTime) {
        for (room, bans) in bansByRoom {
            let left = bans.filter { now < $0.value.deadline }
            count -= bans.count - left.count
            bansByRoom[room] = left.isEmpty ? nil : left
        }
    }
}

import Primitives
import Rooms

/// Identities that left a room recently and may come back just as a member may connect anew: past the room's lock, which is for newcomers, and
/// past the limit of the server's load, of which they were a part.
struct RecentMembers {
    /// For how long: a client that is asked to connect anew does so within seconds, and one that has lost its network tries for about half a minute.
    static let window = TimeSpan.seconds(60)

    /// Oldest first. Entries of identities that have returned stay until they expire.
    private var departures: [(identity: String, until: MonotonicTime)] = []
    private var latest: [String: MonotonicTime] = [:]

    /// A member has left. At most `limit` departures are kept, as many as the room may have participants.
    mutating func add(_ identity: String, at now: MonotonicTime, limit: Int) {
        let expired = departures.prefix { $0.until <= now }.count
        forgetFirst(max(expired, departures.count + 1 - max(1, limit)))
        let until = now + Self.window
        departures.append((identity, until))
        latest[identity] = until
    }

    /// The identity has returned, or must not come back.
    mutating func remove(_ identity: String) { latest[identity] = nil }

    /// Whether a member with this identity has left recently and has not returned.
    func contains(_ identity: String, at now: MonotonicTime) -> Bool { latest[identity].map { now < $0 } ?? false }

    private mutating func forgetFirst(_ count: Int) {
        let count = min(count, departures.count)
        guard count > 0 else { return }
        for departure in departures.prefix(count) where latest[departure.identity] == departure.until {
            latest[departure.identity] = nil
        }
        departures.removeFirst(count)
    }
}

extension LeaveReason {
    /// Whether a member that left for this reason may come back at once: nobody has decided to exclude it.
    var permitsReturn: Bool {
        switch self {
        case .left, .duplicateIdentity, .timeout, .connectionLost, .tooSlow: true
        case .moved, .removed, .roomDeleted, .roomDurationReached, .stayDurationReached, .tokenExpired, .tokenRevoked,
            .policyChanged, .serverShutdown:
            false
        }
    }
}

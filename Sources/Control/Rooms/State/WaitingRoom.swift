import Primitives

/// The guests that wait to be admitted to a room, and those that were. A guest stays in the list while its client repeats its request.
struct WaitingRoom: Sendable {
    private struct Entry: Sendable {
        var guest: WaitingGuest
        var lastAsked: MonotonicTime
    }

    /// The most guests that a moderator can survey in a list; one more is refused.
    static let maximumGuests = 256
    /// A guest whose client has not asked for this long has given up: several times `interval`, so that one lost request does not matter.
    private static let patience = TimeSpan.seconds(15)
    /// How often a client asks.
    static let interval = TimeSpan.seconds(2)
    /// A refused guest may ask again after this.
    private static let refusal = TimeSpan.seconds(60)
    /// Identities that are remembered as admitted; beyond this the oldest must ask again.
    private static let maximumAdmitted = 4_096

    private var entries: [String: Entry] = [:]
    /// Admitted for the life of the room: a lost connection is no reason to wait again.
    private var admitted: Set<String> = []
    private var admittedByAge: [String] = []
    private var turnedAway: [String: MonotonicTime] = [:]
    /// When the guest that was admitted last has had time to ask again.
    private var arrivalsUntil = MonotonicTime.zero

    /// The waiting guests, in order of arrival.
    var guests: [WaitingGuest] {
        entries.values.map(\.guest).sorted { ($0.since, $0.identity) < ($1.since, $1.identity) }
    }

    /// An empty room stays until then: for waiting guests, and for admitted ones that have not joined yet.
    var keepsRoomUntil: MonotonicTime {
        entries.values.reduce(arrivalsUntil) { max($0, $1.lastAsked + Self.patience) }
    }

    /// When `expire` has something to do.
    var nextDeadline: MonotonicTime {
        entries.values.map { $0.lastAsked + Self.patience }.min() ?? .distantFuture
    }

    func isLetIn(_ identity: String) -> Bool { admitted.contains(identity) }

    /// The reply to a guest that is not admitted yet.
    func refusal(of identity: String, at now: MonotonicTime) -> RoomError {
        if let until = turnedAway[identity], now < until {
            return RoomError(.turnedAway, "a moderator did not let you in", retryAfter: until - now)
        }
        guard entries[identity] != nil || entries.count < Self.maximumGuests else {
            return RoomError(.roomFull, "too many wait to be let in", retryAfter: .seconds(30))
        }
        return RoomError(
            .approvalRequired, "wait until a moderator lets you in; ask again meanwhile", retryAfter: Self.interval)
    }

    /// A guest asks to be admitted, or asks again; true: for the first time.
    mutating func ask(_ guest: WaitingGuest, at now: MonotonicTime) -> Bool {
        let isNew = entries[guest.identity] == nil
        entries[guest.identity, default: Entry(guest: guest, lastAsked: now)].lastAsked = now
        return isNew
    }

    /// Removes guests that have given up; true: there were any.
    mutating func expire(at now: MonotonicTime) -> Bool {
        let count = entries.count
        entries = entries.filter { now < $0.value.lastAsked + Self.patience }
        turnedAway = turnedAway.filter { now < $0.value }
        return entries.count != count
    }

    /// Nobody has to wait any more; true: somebody waited.
    private mutating func open(at now: MonotonicTime) -> Bool {
        guard !entries.isEmpty else { return false }
        entries = [:]
        arrivalsUntil = now + Self.patience
        return true
    }

    /// Admits `identity` whenever it asks from now on; false, and nothing changes: it does not wait.
    mutating func letIn(_ identity: String, at now: MonotonicTime) -> Bool {
        guard entries.removeValue(forKey: identity) != nil else { return false }
        arrivalsUntil = now + Self.patience
        admit(identity)
        return true
    }

    /// `identity` need not wait, from now on.
    mutating func admit(_ identity: String) {
        if admitted.insert(identity).inserted { admittedByAge.append(identity) }
        if admittedByAge.count > Self.maximumAdmitted { admitted.remove(admittedByAge.removeFirst()) }
    }

    /// Refuses to admit `identity`; false: it does not wait.
    mutating func turnAway(_ identity: String, at now: MonotonicTime) -> Bool {
        guard entries.removeValue(forKey: identity) != nil else { return false }
        turnedAway[identity] = now + Self.refusal
        return true
    }

    /// A member that was removed must ask again.
    mutating func forget(_ identity: String) {
        guard admitted.remove(identity) != nil else { return }
        admittedByAge.removeAll { $0 == identity }
    }
}

// MARK: - Notifying moderators

extension WaitingRoom {
    /// Sends the list to everybody who may decide about it.
    func notifyModerators(_ roster: inout Roster, _ turn: inout RoomTurn) {
        for session in roster.sessions where roster[session]?.permissions.roomAdmin == true {
            roster.notify(session, .waitingRoomChanged(guests), &turn)
        }
    }

    /// The rules have changed. Members in the room count as admitted, and may come back; if the new rules have no waiting room, nobody waits.
    mutating func policyChanged(
        from old: RoomPolicy, to new: RoomPolicy, _ roster: inout Roster, _ turn: inout RoomTurn
    ) {
        if new.waitingRoom, !old.waitingRoom {
            for member in roster.all { admit(member.info.identity) }
        }
        if !new.waitingRoom, open(at: turn.now) { notifyModerators(&roster, &turn) }
    }
}

import Primitives

/// Who waits to be let into a room, and who was. A guest stays in the list while its client asks again.
struct WaitingRoom: Sendable {
    private struct Entry: Sendable {
        var guest: WaitingGuest
        var lastAsked: MonotonicTime
    }

    /// As long as a moderator needs to look at a list; one more is refused.
    static let maximumGuests = 256
    /// After so long without a sign a guest has given up: several times `interval`, so that one lost request is no reason.
    private static let patience = TimeInterval.seconds(15)
    /// How often a client asks.
    static let interval = TimeInterval.seconds(2)
    /// Whoever was turned away may ask again after this.
    private static let refusal = TimeInterval.seconds(60)
    /// Identities that are remembered as let in; beyond it the oldest must ask again.
    private static let maximumAdmitted = 4_096

    private var entries: [String: Entry] = [:]
    /// Let in for the life of the room: a lost connection is no reason to wait again.
    private var admitted: Set<String> = []
    private var admittedByAge: [String] = []
    private var turnedAway: [String: MonotonicTime] = [:]
    /// When whoever was let in last has had time to ask again.
    private var arrivalsUntil = MonotonicTime.zero

    /// Those who wait, the first to come first.
    var guests: [WaitingGuest] {
        entries.values.map(\.guest).sorted { ($0.since, $0.identity) < ($1.since, $1.identity) }
    }

    /// A room in which nobody is stays until then: for those who wait, and for those who were let in and have not come yet.
    var keepsRoomUntil: MonotonicTime {
        entries.values.reduce(arrivalsUntil) { max($0, $1.lastAsked + Self.patience) }
    }

    /// When `expire` has something to do.
    var nextDeadline: MonotonicTime {
        entries.values.map { $0.lastAsked + Self.patience }.min() ?? .distantFuture
    }

    func isLetIn(_ identity: String) -> Bool { admitted.contains(identity) }

    /// The answer to somebody who is not let in yet.
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

    /// Somebody asks to be let in, or asks again; true: for the first time.
    mutating func ask(_ guest: WaitingGuest, at now: MonotonicTime) -> Bool {
        let isNew = entries[guest.identity] == nil
        entries[guest.identity, default: Entry(guest: guest, lastAsked: now)].lastAsked = now
        return isNew
    }

    /// Forgets those who have given up; true: there were any.
    mutating func expire(at now: MonotonicTime) -> Bool {
        let count = entries.count
        entries = entries.filter { now < $0.value.lastAsked + Self.patience }
        turnedAway = turnedAway.filter { now < $0.value }
        return entries.count != count
    }

    /// Nobody has to wait any more; true: somebody did.
    private mutating func open(at now: MonotonicTime) -> Bool {
        guard !entries.isEmpty else { return false }
        entries = [:]
        arrivalsUntil = now + Self.patience
        return true
    }

    /// Lets `identity` in whenever it asks from now on; false, and nothing is done: it does not wait.
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

    /// Does not let `identity` in; false: it does not wait.
    mutating func turnAway(_ identity: String, at now: MonotonicTime) -> Bool {
        guard entries.removeValue(forKey: identity) != nil else { return false }
        turnedAway[identity] = now + Self.refusal
        return true
    }

    /// Whoever was removed must ask again.
    mutating func forget(_ identity: String) {
        guard admitted.remove(identity) != nil else { return }
        admittedByAge.removeAll { $0 == identity }
    }
}

// MARK: - Telling moderators

extension WaitingRoom {
    /// Sends the list to everybody who may decide.
    func notifyModerators(_ roster: inout Roster, _ turn: inout RoomTurn) {
        for session in roster.sessions where roster[session]?.permissions.roomAdmin == true {
            roster.notify(session, .waitingRoomChanged(guests), &turn)
        }
    }

    /// Other rules hold. Whoever is here already has been let in, and may come back; where nobody has to wait any more, nobody does.
    mutating func policyChanged(
        from old: RoomPolicy, to new: RoomPolicy, _ roster: inout Roster, _ turn: inout RoomTurn
    ) {
        if new.waitingRoom, !old.waitingRoom {
            for member in roster.all { admit(member.info.identity) }
        }
        if !new.waitingRoom, open(at: turn.now) { notifyModerators(&roster, &turn) }
    }
}

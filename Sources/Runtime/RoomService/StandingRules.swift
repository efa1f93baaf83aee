import AccessTokens
import Primitives
import Rooms

/// Rules that outlast rooms: presets, bans, revocations, and cutoffs for older tokens of rooms that were deleted and participants that were removed.
///
/// Each change returns the rule that the caller must persist.
struct StandingRules {
    /// A few for each kind of room that a company has, and for each of its customers.
    private static let maximumPresets = 1_000

    /// Named rules that a token or the creation of a room may refer to.
    private var presets: [String: PolicyDocument] = [:]
    private var bans = Bans()
    private var cutoffs = TokenCutoffs()
    private let revocations: RevocationList
    /// Rules that steps of rooms have made and that are not stored yet.
    private var unkept: [StandingRule] = []

    init(revocations: RevocationList) { self.revocations = revocations }

    /// Refuses a token that cannot join the room now, or its bearer.
    func check(_ claims: AccessClaims, room: String, now: MonotonicTime) throws(RoomError) {
        try cutoffs.check(claims, room: room, now: now)
        try checkReturn(claims, room: room, now: now)
    }

    /// Refuses a token with which a participant that was moved to the room comes back, or its bearer. The token is for another room; that this one was closed
    /// to older tokens does not count, because an operator's move overrides that.
    func checkReturn(_ claims: AccessClaims, room: String, now: MonotonicTime) throws(RoomError) {
        try bans.check(claims.identity, room: room, now: now)
        guard revocations.revokes(claims, now: now) else { return }
        throw RoomError(.tokenRevoked, "the token was revoked; get a new one")
    }

    /// Removes and returns the rules that steps have made since the last call.
    mutating func consumeUnkept() -> [StandingRule] {
        defer { unkept = [] }
        return unkept
    }

    /// Restores rules that were stored in an earlier run of the server. Expired ones are skipped.
    mutating func restore(_ rules: [StandingRule], _ turn: RoomTurn) {
        func left(until: Int64) -> TimeSpan { .milliseconds(max(0, until - turn.wallClock)) }
        for rule in rules {
            // Rules beyond a table's limit were refused when they were made, so none is refused here.
            switch rule {
            case .preset(let name, let document): presets[name] = document
            case .ban(let identity, let room, let ban?):
                _ = try? bans.add(identity, room: room, for: left(until: ban.until), reason: ban.reason, turn: turn)
            case .revocation(let subject, let revocation?):
                _ = try? revocations.add(
                    subject, issuedAfter: revocation.issuedAfter, for: left(until: revocation.until), turn: turn)
            case .closure(let room, let identity, let closure?):
                cutoffs.add(
                    room: room, identity: identity, second: closure.issuedAfter,
                    until: turn.now + left(until: closure.until), now: turn.now)
            case .ban, .revocation, .closure: break
            }
        }
    }
}

// MARK: - Tokens

extension StandingRules {
    /// From now on older tokens are no longer valid for the room, or for one identity in it: the deletion or removal stays in effect. Stored with
    /// ``consumeUnkept()``.
    mutating func close(
        room: String, identity: String?, _ closure: TokenClosure, now: MonotonicTime, wallClock: Int64
    ) {
        cutoffs.add(
            room: room, identity: identity, second: closure.issuedAfter, until: now + closure.duration, now: now)
        let until = wallClock + closure.duration.nanoseconds / 1_000_000
        // In the middle of a room's step, which does not wait; its end does.
        unkept.append(
            .closure(
                room: room, identity: identity, StandingRule.Closure(issuedAfter: closure.issuedAfter, until: until)))
    }

    /// An operator creates the room anew: older tokens are valid for it again.
    mutating func reopen(room: String) {
        if cutoffs.reopen(room: room) { unkept.append(.closure(room: room, identity: nil, nil)) }
    }
}

// MARK: - Bans

extension StandingRules {
    func checkBan(of identity: String, room: String, now: MonotonicTime) throws(RoomError) {
        try bans.check(identity, room: room, now: now)
    }

    mutating func ban(
        _ identity: String, room: String, for duration: TimeSpan, reason: String, turn: RoomTurn
    ) throws(RoomError) -> StandingRule {
        let ban = try bans.add(identity, room: room, for: duration, reason: reason, turn: turn)
        return .ban(identity: identity, room: room, StandingRule.Ban(until: ban.until, reason: ban.reason))
    }

    func listBans(room: String, now: MonotonicTime) -> [Bans.Ban] { bans.list(room: room, now: now) }

    mutating func endBan(of identity: String, room: String, now: MonotonicTime) throws(RoomError) -> StandingRule {
        try bans.remove(identity, room: room, now: now)
        return .ban(identity: identity, room: room, nil)
    }
}

// MARK: - Presets

extension StandingRules {
    /// By name.
    var listedPresets: [(name: String, document: PolicyDocument)] {
        presets.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    func preset(_ name: String) -> PolicyDocument? { presets[name] }

    /// Returns whether it is new; refused beyond the limit.
    mutating func setPreset(
        _ document: PolicyDocument, named name: String
    ) throws(RoomError) -> (isNew: Bool, rule: StandingRule) {
        try TextRule.identifier.check(name, "the preset's name", tooLong: .invalidRequest)
        guard presets[name] != nil || presets.count < Self.maximumPresets else {
            throw RoomError(.limitExceeded, "the server holds as many presets as it can; delete one first")
        }
        let isNew = presets.updateValue(document, forKey: name) == nil
        return (isNew, .preset(name: name, document))
    }

    mutating func deletePreset(named name: String) -> StandingRule {
        presets[name] = nil
        return .preset(name: name, nil)
    }
}

public import Primitives
public import Rooms

/// A rule that outlasts rooms, and the process where somebody writes it down: ``RoomService`` says each as it changes, and is given them back at the
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

extension RoomService {
    /// Takes up what was written down in an earlier life of the server. Call before the first join. What has run out meanwhile is left out.
    public func restore(_ rules: [StandingRule]) {
        let turn = newTurn()
        func left(until: Int64) -> TimeInterval { .milliseconds(max(0, until - turn.wallClock)) }
        for rule in rules {
            // Beyond a table's bound a rule was refused when it was made, so none is refused here.
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

// MARK: - Revocations

extension RoomService {
    /// Makes tokens good for nothing for `duration`, and ends the stays of those who joined with them.
    public func revoke(
        _ subject: Revocations.Subject, for duration: TimeInterval
    ) async throws(RoomError) -> Revocations.Revocation {
        let revocation: Revocations.Revocation
        do throws(RoomError) {
            revocation = try revocations.add(subject, for: duration, turn: newTurn())
        } catch {
            throw counted(error)
        }
        for hosted in rooms.values { await step(hosted) { $0.endStays(by: subject, turn: &$1) } }
        let closure = StandingRule.Closure(issuedAfter: revocation.issuedAfter, until: revocation.until)
        await keep(.revocation(subject, closure))
        return revocation
    }

    /// The revocations that hold.
    public func listRevocations() -> [Revocations.Revocation] { revocations.list(now: media.now()) }

    /// Makes revoked tokens good again.
    public func endRevocation(of subject: Revocations.Subject) async throws(RoomError) {
        do throws(RoomError) {
            try revocations.remove(subject)
        } catch {
            throw counted(error)
        }
        await keep(.revocation(subject, nil))
    }
}

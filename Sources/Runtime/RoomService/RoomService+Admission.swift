import AccessTokens
public import Primitives
import Rooms

extension RoomService {
    /// The room that a join goes to, made where that is allowed.
    func admit(_ request: JoinRequest) throws(RoomError) -> (HostedRoom, RoomTurn) {
        do throws(RoomError) {
            guard !isEnding else { throw RoomError(.draining, "the server is shutting down") }
            guard request.claims.video.roomJoin else {
                throw RoomError(.permissionDenied, "the token does not permit joining")
            }
            var turn = newTurn()
            let name = try RoomNames.resolve(
                granted: request.claims.video.room, asked: request.room, standard: configuration.defaultRoom,
                turn: &turn)
            try cutoffs.check(request.claims, room: name, now: media.now())
            try bans.check(request.claims.identity, room: name, now: media.now())
            try checkRevocations(request.claims)
            guard nameBySession.count < configuration.maxParticipants else {
                throw RoomError(.overloaded, "participant limit of the server reached", retryAfter: .seconds(10))
            }
            let perSecond = configuration.maxJoinsPerSecond
            guard joins.take(every: .seconds(1) / Int64(perSecond), atOnce: perSecond, at: media.now()) else {
                throw RoomError(.rateLimited, "too many joins per second", retryAfter: .seconds(1))
            }
            if let hosted = rooms[name] {
                // Whoever is in and connects anew takes the place of themselves.
                if !hosted.room.hasMember(identity: request.claims.identity) { try checkLoad(of: hosted.worker) }
                return (hosted, turn)
            }
            guard configuration.autoCreateRooms else { throw RoomError(.roomNotFound, "there is no such room") }
            let preset = request.claims.video.preset
            return (try makeRoom(named: name, preset: preset, forJoin: true, turn: &turn), turn)
        } catch {
            throw counted(error)
        }
    }

    /// The worker for a new room: of those that are not full the one with the least to do. A room without anybody, which an operator makes, costs nothing.
    func workerForRoom(forJoin: Bool) throws(RoomError) -> WorkerIndex {
        let full = load.fullWorkers()
        if let worker = media.leastLoadedWorker(except: full) {
            if forJoin { try checkLoad(of: worker) }
            return worker
        }
        guard let worker = media.leastLoadedWorker(except: []) else {
            throw RoomError(.overloaded, "no media worker is available for the room", retryAfter: .seconds(5))
        }
        if forJoin { try checkLoad(of: worker) }
        return worker
    }

    /// Refuses one more participant where calls that are up would suffer.
    private func checkLoad(of worker: WorkerIndex) throws(RoomError) {
        if let resource = load.admit(to: worker) { throw Self.overloaded(resource) }
    }

    /// Clients that were refused together do not know of each other; ten seconds are long enough for a meeting to end, and short enough to wait.
    static func overloaded(_ resource: LoadResource) -> RoomError {
        RoomError(
            .overloaded, "the server is at its limit (\(resource.rawValue)); try again later", retryAfter: .seconds(10))
    }

    func checkRevocations(_ claims: AccessClaims) throws(RoomError) {
        guard revocations.revokes(claims, now: media.now()) else { return }
        throw RoomError(.tokenRevoked, "the token was revoked; get a new one")
    }

    /// Writes down that somebody could not come into a room that is there.
    func recordRefusal(_ error: RoomError, of request: JoinRequest) {
        // Noted once, as a guest who waits.
        guard error.code != .approvalRequired else { return }
        trace(error.code, of: request)
        let named = request.claims.video.room.flatMap { $0.isEmpty ? nil : $0 } ?? request.room
        guard let hosted = rooms[named ?? configuration.defaultRoom],
            hosted.mayWriteRefusal(error.code, at: media.now())
        else { return }
        record(.joinRefused(identity: request.claims.identity, code: error.code), in: hosted)
    }

    /// A joining step. A room that was made for a join that was then refused goes away again, and so does a session whose worker does not answer.
    func enter<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn,
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> (session: SessionID, reply: Reply)
    ) async throws(RoomError) -> Reply {
        let isNew = !turn.effects.isEmpty
        var joined: SessionID?
        do throws(RoomError) {
            let reply = try await step(hosted, turn) { (room, turn) throws(RoomError) -> Reply in
                do throws(RoomError) {
                    let entered = try body(&room, &turn)
                    joined = entered.session
                    return entered.reply
                } catch {
                    // A room in which somebody waits stays, so that the guest is seen.
                    if isNew, error.code != .approvalRequired { room.close(reason: .roomDeleted, turn: &turn) }
                    throw error
                }
            }
            totals.joins += 1
            return reply
        } catch {
            if let joined { await leave(joined) }
            throw error
        }
    }
}

/// Which tokens an operator's intervention has made worthless.
public struct TokenClosure: Sendable, Hashable {
    /// For how long; zero: none are.
    public var duration: TimeInterval
    /// Seconds since 1970: a token must have been issued later.
    public var issuedAfter: Int64
}

extension RoomService {
    /// What holds for tokens when something is ended now.
    var closure: TokenClosure {
        TokenClosure(duration: configuration.closedFor, issuedAfter: media.wallClockMilliseconds() / 1_000)
    }

    /// From now on older tokens are no longer good for the room, or for one identity in it: what was ended stays so.
    func refuseOlderTokens(room: String, identity: String?) {
        guard configuration.closedFor > .zero else { return }
        let now = media.now()
        cutoffs.add(
            room: room, identity: identity, second: closure.issuedAfter, until: now + configuration.closedFor, now: now)
        let until = media.wallClockMilliseconds() + configuration.closedFor.nanoseconds / 1_000_000
        let rule = StandingRule.closure(
            room: room, identity: identity, StandingRule.Closure(issuedAfter: closure.issuedAfter, until: until))
        // In the middle of a room's step, which does not wait; its end does.
        unkept.append(rule)
    }
}

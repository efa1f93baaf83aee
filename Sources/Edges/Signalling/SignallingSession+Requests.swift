import AccessTokens
import EdgeSupport
import Logging
import Primitives
import RoomService
import Rooms

extension SignallingSession {
    /// Carries one request out.
    func handle(_ frame: ClientFrame, _ state: inout State) async -> Outcome {
        do throws(SignallingError) {
            let request = try frame.request.get()
            if let attachment = state.attachment, await !attachment.keepAlive(in: context.rooms) { throw .notJoined }
            switch request {
            case .ping: return frame.id.map { .reply(.pong(id: $0)) } ?? Outcome()
            case .join(let fields): return try await join(fields, frame.id, &state)
            case .resume(let session, let sequence, let room):
                return try await resume(session, sequence, room, frame.id, &state)
            default: break
            }
            guard let session = state.session else {
                guard case .refresh(let token) = request else { throw .notJoined }
                return try replaceClaims(with: token, frame.id, &state)
            }
            if request == .leave {
                var outcome = confirmation(frame.id)
                outcome.leaves = true
                return outcome
            }
            if case .refresh(let token) = request {
                try await refresh(token, session)
                return confirmation(frame.id)
            }
            return try await perform(request, frame.id, session)
        } catch {
            var outcome = Outcome.reply(.error(id: frame.id, error))
            if state.joins > Self.maximumJoins { outcome.closing = (CloseCode.policyViolation, "too many joins") }
            return outcome
        }
    }

    private func join(_ fields: JoinFields, _ id: Int64?, _ state: inout State) async throws(SignallingError) -> Outcome
    {
        guard state.session == nil else { throw .alreadyJoined }
        state.joins += 1
        let claims = state.claims ?? self.claims
        // A guest may wait to be let in for longer than the token is valid.
        guard !context.rooms.hasExpired(claims) else { throw Self.refused(.expired) }
        let joined: JoinedSession
        do throws(RoomError) {
            var request = fields.request(claims, queryRoom: queryRoom, userAgent: userAgent)
            request.address = address
            request.origin = origin
            if let trace = fields.trace { request.origin?.trace = trace }
            joined = try await context.rooms.join(request)
        } catch {
            // A guest who waits to be let in is asked to join again.
            if error.code == .approvalRequired {
                state.joins -= 1
                state.waits = true
            }
            throw refused(error)
        }
        state.attachment = Attachment(session: joined.session, events: joined.events, number: joined.attachment)
        return Outcome(replies: [.joined(id: id, joined.session, joined.snapshot)], isNew: true)
    }

    /// Another token before there is a session: the next join uses it, if it is for the same person and room.
    private func replaceClaims(
        with token: String, _ id: Int64?, _ state: inout State
    ) throws(SignallingError) -> Outcome {
        let fresh = try verified(token)
        guard fresh.apiKey == claims.apiKey, fresh.identity == claims.identity, fresh.video.room == claims.video.room
        else {
            throw SignallingError(RoomError(.permissionDenied, "the token is for another participant or room"))
        }
        guard fresh.video.roomJoin else { throw Self.refused(.notPermitted) }
        state.claims = fresh
        return confirmation(id)
    }

    private func verified(_ token: String) throws(SignallingError) -> AccessClaims {
        do {
            return try context.gate.claims(of: token)
        } catch {
            throw Self.refused(error)
        }
    }

    private static func refused(_ error: AccessTokenError) -> SignallingError {
        SignallingError(error.rawValue, Problem(error).detail)
    }

    private func refresh(_ token: String, _ session: SessionID) async throws(SignallingError) {
        let claims = try verified(token)
        try await asking { () async throws(RoomError) in try await context.rooms.refreshToken(claims, of: session) }
    }

    /// A session is resumed only with a token that could have joined it.
    private func resume(
        _ session: SessionID, _ sequence: UInt64, _ room: String?, _ id: Int64?, _ state: inout State
    ) async throws(SignallingError) -> Outcome {
        guard state.session == nil else { throw .alreadyJoined }
        state.joins += 1
        let bearer = state.claims ?? claims
        let resumed: ResumedSession
        do throws(RoomError) {
            resumed = try await context.rooms.resume(session, after: sequence, claims: bearer)
        } catch {
            // A refusal would make the client join, and end the newer session in turn.
            if error.code == .sessionNotFound, await context.rooms.isReplaced(session, bearer, room: queryRoom ?? room)
            {
                return Outcome(closing: (CloseCode.duplicateIdentity, "a newer session has the identity"))
            }
            throw refused(error)
        }
        state.attachment = Attachment(session: session, events: resumed.events, number: resumed.attachment)
        return Outcome(replies: [.resumed(id: id, session, sequence: sequence)], isNew: true)
    }

    private func perform(
        _ request: ClientRequest, _ id: Int64?, _ session: SessionID
    ) async throws(SignallingError) -> Outcome {
        let rooms = context.rooms
        return try await asking { () async throws(RoomError) in
            switch request {
            case .offer(let connection, let sdp):
                let answer = try await rooms.offer(session, connection: connection, sdp: sdp)
                return .reply(.answer(id: id, connection: connection, answer))
            case .answer(let connection, let sdp):
                try await rooms.answer(session, connection: connection, sdp: sdp)
            case .ice(let connection, let candidate, let mid):
                try await rooms.candidate(session, connection: connection, candidate: candidate, mid: mid)
            case .bye(let connection, let keepsSubscriptions):
                try await rooms.bye(session, connection: connection, keepsSubscriptions: keepsSubscriptions)
            case .perform(let requests):
                for request in requests { try await rooms.perform(request, in: session) }
            case .lock(let password):
                try await rooms.lock(room: try rooms.room(of: session), password: password, by: session)
            case .unlock:
                try await rooms.unlock(room: try rooms.room(of: session), by: session)
            case .snapshot:
                return .reply(.snapshot(id: id, try await rooms.snapshot(session)))
            case .allocation:
                return .reply(.allocation(id: id, try await rooms.allocation(of: session)))
            case .join, .resume, .refresh, .ping, .leave:
                break
            }
            return confirmation(id)
        }
    }

    private func confirmation(_ id: Int64?) -> Outcome { id.map { .reply(.ok(id: $0)) } ?? Outcome() }

    /// Runs `body` and turns the room's refusal into the protocol's codes.
    private func asking<Value: Sendable>(
        _ body: () async throws(RoomError) -> Value
    ) async throws(SignallingError) -> Value {
        do throws(RoomError) {
            return try await body()
        } catch {
            throw refused(error)
        }
    }

    private func refused(_ error: RoomError) -> SignallingError {
        context.logger.debug("request refused", ["code": .text(error.code.rawValue)])
        return SignallingError(error)
    }
}

public import Rooms

/// The application server's calls to members that wait for a reply.
struct MemberCalls {
    private struct Call {
        let session: SessionID
        var isAcknowledged = false
        let answers: AsyncStream<CallAnswer.Outcome>.Continuation
    }

    /// By number.
    private var calls: [String: Call] = [:]
    private var count: UInt64 = 0

    /// The maximum number of waiting calls: each costs its caller a connection, and this process some hundred bytes.
    static let most = 1_000

    var isFull: Bool { calls.count >= Self.most }

    /// A number that no other call in this room has, whoever makes it.
    mutating func nextNumber(inRoom sid: String) -> String {
        count += 1
        return "RPC_\(sid)_\(count)"
    }

    /// A call begins; returns the replies of `session`.
    mutating func begin(_ number: String, to session: SessionID) -> AsyncStream<CallAnswer.Outcome> {
        // One acknowledgement and one result; more are not requested.
        let (answers, continuation) = AsyncStream.makeStream(
            of: CallAnswer.Outcome.self, bufferingPolicy: .bufferingNewest(1))
        calls[number] = Call(session: session, answers: continuation)
        return answers
    }

    /// Accepts a member's reply; false if it does not reply to a call of the server to this member: then another member waits for it.
    mutating func accept(_ answer: CallAnswer, from session: SessionID) -> Bool {
        guard var call = calls[answer.call], call.session == session else { return false }
        if answer.outcome == .acknowledged {
            call.isAcknowledged = true
            calls[answer.call] = call
        } else {
            call.answers.yield(answer.outcome)
            end(answer.call)
        }
        return true
    }

    /// The time is over; `unlessAcknowledged`: only for a call that has not even arrived.
    mutating func end(_ number: String, unlessAcknowledged: Bool) {
        guard !unlessAcknowledged || calls[number]?.isAcknowledged == false else { return }
        end(number)
    }

    /// The member has left: no more replies follow.
    mutating func end(to session: SessionID) {
        for (number, call) in calls where call.session == session { end(number) }
    }

    private mutating func end(_ number: String) { calls.removeValue(forKey: number)?.answers.finish() }
}

extension RoomHost {
    /// How long a call may take to arrive, as in LiveKit's own server and clients.
    private static let arrival = Duration.seconds(7)

    /// Sends a call to a member, and waits for its reply; nil: no reply in time, or the member has left.
    ///
    /// `make` encodes the call with this number for the protocol with the name `protocol`.
    public func call(
        _ identity: String, in room: String, protocol: String, within limit: Duration,
        make: @Sendable (_ number: String) -> RoomMessage
    ) async throws(RoomError) -> CallAnswer.Outcome? {
        let hosted = try hosted(named: room)
        let session = try hosted.room.receiver(ofCallTo: identity, protocol: `protocol`)
        guard !calls.isFull else { throw RoomError(.overloaded, "too many calls wait for an answer") }
        let number = calls.nextNumber(inRoom: hosted.room.sid), message = make(number)
        let answers = calls.begin(number, to: session)
        defer { calls.end(number, unlessAcknowledged: false) }
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.sendFromServer(message, turn: &turn)
        }
        let patience = Task {
            guard (try? await Task.sleep(for: min(limit, Self.arrival))) != nil else { return }
            calls.end(number, unlessAcknowledged: true)
            guard (try? await Task.sleep(for: max(.zero, limit - Self.arrival))) != nil else { return }
            calls.end(number, unlessAcknowledged: false)
        }
        defer { patience.cancel() }
        for await outcome in answers { return outcome }
        return nil
    }
}

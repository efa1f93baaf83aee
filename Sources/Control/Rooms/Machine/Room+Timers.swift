public import Primitives

// Signs of life and deadlines.

extension Room {
    /// A sign of life of a signalled session.
    public mutating func touch(_ session: SessionID, turn: inout RoomTurn) {
        members[session]?.lastSign = turn.now
    }

    /// The socket of `session` is gone; media goes on.
    public mutating func detach(_ session: SessionID, turn: inout RoomTurn) {
        guard let member = members[session], member.options.isSignalled, member.detachedSince == nil else { return }
        members[session]?.detachedSince = turn.now
    }

    /// `session` has a socket again.
    public mutating func attach(_ session: SessionID, turn: inout RoomTurn) throws(RoomError) {
        guard try member(session).options.isSignalled else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        members[session]?.detachedSince = nil
        members[session]?.lastSign = turn.now
    }

    /// Whether something waits to be told with the next `advance`.
    public var hasNews: Bool { mayHaveChanged && !order.isEmpty }

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime {
        if isEnded { return .distantFuture }
        if hasNews { return MonotonicTime(milliseconds: 0) }
        if let emptyDeadline { return emptyDeadline }
        var next = MonotonicTime.distantFuture
        for member in members.values { next = min(next, deadline(of: member)) }
        return next
    }

    /// Ends whom nobody has heard of for long, WHIP and WHEP sessions that do not connect, and a room in which nobody is for long. A room with one participant is
    /// not empty.
    public mutating func advance(turn: inout RoomTurn) {
        guard !isEnded else { return }
        let silent = order.filter { session in members[session].map { deadline(of: $0) <= turn.now } ?? false }
        for session in silent {
            let isSignalled = members[session]?.options.isSignalled ?? false
            remove(session, reason: isSignalled ? .timeout : .connectionLost, turn: &turn)
        }
        if !silent.isEmpty { makeOffers(&turn) }
        tellSize(&turn)
        if let emptyDeadline, emptyDeadline <= turn.now { end(&turn) }
    }

    /// Tells how many are in the room. Not at once but with the next tick, so that a storm of joins makes few such events.
    private mutating func tellSize(_ turn: inout RoomTurn) {
        guard mayHaveChanged else { return }
        mayHaveChanged = false
        let info = info
        guard info != toldInfo else { return }
        toldInfo = info
        tellRoster(.roomUpdated(info), &turn)
    }

    private func deadline(of member: Member) -> MonotonicTime {
        guard member.options.isSignalled else { return connectDeadline(of: member) }
        if let since = member.detachedSince { return since + context.limits.resumeWindow }
        return member.lastSign + context.limits.keepAliveTimeout
    }

    /// WHIP and WHEP sessions live as long as their connection. One that is up is watched by its worker, which tells its end; one that does not come
    /// up may never be told of.
    private func connectDeadline(of member: Member) -> MonotonicTime {
        guard !member.connections.contains(where: { $0.state == .connected }) else { return .distantFuture }
        let latest = member.connections.map(\.connectingSince).max() ?? member.lastSign
        return latest + context.limits.connectTimeout
    }

    private var emptyDeadline: MonotonicTime? {
        emptySince.map { $0 + (wasOccupied ? policy.departureTimeout : policy.emptyTimeout) }
    }
}

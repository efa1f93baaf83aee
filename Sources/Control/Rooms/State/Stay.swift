import MediaControl
import Primitives

extension Member {
    /// A member's stay in a room: since when, what it has reached, and the signs of life without which it ends.
    struct Stay: Sendable {
        /// Its beginning in this room.
        private(set) var joined: MonotonicTime
        private var steps: Set<JoinStep> = []
        private var lastSign: MonotonicTime
        /// Since when there is no socket.
        private var detachedSince: MonotonicTime?

        init(joined: MonotonicTime, lastSign: MonotonicTime) {
            self.joined = joined
            self.lastSign = lastSign
        }
    }
}

// MARK: - What it reaches

extension Member.Stay {
    func hasReached(_ step: JoinStep) -> Bool { steps.contains(step) }

    mutating func reach(_ step: JoinStep) { steps.insert(step) }

    /// It goes on in another room.
    mutating func beginAnew(at now: MonotonicTime) {
        joined = now
        lastSign = now
    }

    /// Its connections have ended: how long it takes to connect is measured anew.
    mutating func loseConnections() { steps = [] }
}

// MARK: - Signs of life

extension Member.Stay {
    /// Whether its socket is closed.
    var isDetached: Bool { detachedSince != nil }

    mutating func showSign(at now: MonotonicTime) { lastSign = now }

    /// Its socket is closed; media goes on.
    mutating func detach(at now: MonotonicTime) { detachedSince = now }

    /// It has a socket again.
    mutating func attach(at now: MonotonicTime) {
        detachedSince = nil
        lastSign = now
    }

    /// When a session with a socket ends, if it shows no sign of life before.
    func signDeadline(_ limits: RoomLimits) -> MonotonicTime {
        if let since = detachedSince { return since + limits.resumeWindow }
        return lastSign + limits.keepAliveTimeout
    }

    /// WHIP and WHEP sessions live as long as their connection. One that is up is watched by its worker, which reports its end; of one that does
    /// not come up nothing may ever be reported.
    func connectDeadline(of connections: [Connection], _ limits: RoomLimits) -> MonotonicTime {
        guard !connections.contains(where: { $0.state == .connected }) else { return .distantFuture }
        let latest = connections.map(\.connectingSince).max() ?? lastSign
        return latest + limits.connectTimeout
    }
}

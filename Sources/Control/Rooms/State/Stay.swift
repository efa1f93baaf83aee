import MediaControl
import Primitives

extension Member {
    /// A member's stay in a room: since when, which steps it has reached, and the keep-alives without which it ends.
    struct Stay: Sendable {
        /// Its beginning in this room.
        private(set) var joined: MonotonicTime
        private var steps: Set<JoinStep> = []
        private var lastSign: MonotonicTime
        /// The time since which it has no socket.
        private var detachedSince: MonotonicTime?

        init(joined: MonotonicTime) {
            self.joined = joined
            lastSign = joined
        }
    }
}

// MARK: - Steps that it reaches

extension Member.Stay {
    func hasReached(_ step: JoinStep) -> Bool { steps.contains(step) }

    mutating func reach(_ step: JoinStep) { steps.insert(step) }

    /// It continues in another room.
    mutating func beginAnew(at now: MonotonicTime) {
        joined = now
        lastSign = now
    }

    /// Its connections have ended: the time to connect is measured anew.
    mutating func loseConnections() { steps = [] }
}

// MARK: - Keep-alives

extension Member.Stay {
    /// Whether its socket is closed.
    var isDetached: Bool { detachedSince != nil }

    mutating func showSign(at now: MonotonicTime) { lastSign = now }

    /// Its socket is closed; media continues.
    mutating func detach(at now: MonotonicTime) { detachedSince = now }

    /// It has a socket again.
    mutating func attach(at now: MonotonicTime) {
        detachedSince = nil
        lastSign = now
    }

    /// When a session with a socket ends, if no keep-alive arrives before.
    func signDeadline(_ limits: RoomLimits) -> MonotonicTime {
        if let since = detachedSince { return since + limits.resumeWindow }
        return lastSign + limits.keepAliveTimeout
    }

    /// WHIP and WHEP sessions last as long as their connection. One that is up is watched by its worker, which reports its end; for one that does
    /// not come up, no report may ever arrive.
    func connectDeadline(of connections: [Connection], _ limits: RoomLimits) -> MonotonicTime {
        guard !connections.contains(where: { $0.state == .connected }) else { return .distantFuture }
        let latest = connections.map(\.connectingSince).max() ?? lastSign
        return latest + limits.connectTimeout
    }
}

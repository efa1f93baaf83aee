import CSoup
import Primitives

/// Learning what open WebSockets have sent, and that they still live, at a cost that does not grow with those that are idle.
extension HTTPListener {
    /// In how many turns all are pinged, so that they do not answer all at once.
    private static let pingTurns: UInt64 = 10

    /// Lets bytes of a WebSocket reach `readWebSocket`. TLS may hold bytes that its socket does not show: it has a source of its own.
    func watch(_ session: WebSocketSession) {
        let id = session.id
        if configuration.tls == nil, let socket = session.socket {
            let call: @Sendable (UInt64) -> Void = { [weak self] id in
                self?.assumeIsolated { _ = $0.readWebSocket(id) }
            }
            readable = readable ?? ReadableSockets(on: loop, call)
            let descriptor = g_socket_get_fd(socket)
            if readable?.add(descriptor, number: id) == true { return session.watched = descriptor }
        }
        guard let input = session.input else { return }
        session.readSource = GLibSource(readable: input, on: loop) { [weak self] in
            self?.assumeIsolated { $0.readWebSocket(id) } ?? false
        }
    }

    /// One timer for all: each tenth of the interval a tenth of the sockets is pinged.
    func startPinging() {
        guard pinger == nil else { return }
        let step = TimeInterval(nanoseconds: configuration.webSocket.pingInterval.nanoseconds / Int64(Self.pingTurns))
        pinger = GLibSource(every: step, on: loop) { [weak self] in
            self?.assumeIsolated { $0.pingSome() } ?? false
        }
    }

    /// Whether any are left to ping.
    private func pingSome() -> Bool {
        pingTurn = (pingTurn + 1) % Self.pingTurns
        for session in Array(webSockets.values) where session.id % Self.pingTurns == pingTurn { ping(session) }
        if webSockets.isEmpty { pinger = nil }
        return !webSockets.isEmpty
    }

    private func ping(_ session: WebSocketSession) {
        session.silentPings = session.wasHeard ? 0 : session.silentPings + 1
        session.wasHeard = false
        if session.silentPings >= 2 {
            session.abort()
        } else {
            session.ping()
            writeWebSocket(session.id)
        }
    }
}

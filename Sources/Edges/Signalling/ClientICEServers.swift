import AccessTokens
import EdgeSupport

/// The ICE servers that are announced to one client, and announced again when they change and before their credentials expire.
struct ClientICEServers: Sendable {
    private let servers: ICEServers
    private let claims: AccessClaims
    private let room: String?
    private let origin: String?

    init(_ servers: ICEServers, claims: AccessClaims, room: String?, origin: String?) {
        self.servers = servers
        self.claims = claims
        self.room = room
        self.origin = origin
    }

    /// The servers with credentials as of now.
    var current: [ICEServer] { servers.servers(for: claims, room: room, origin: origin) }

    /// Gets an element whenever the configured servers change, from now on.
    var changes: AsyncStream<Void> { servers.changes }

    /// Announces them whenever they change, and each time before their credentials expire, until the task is cancelled.
    func refresh(on socket: some SignallingSocket, after changes: AsyncStream<Void>) async {
        var renewal = Task { await renew(on: socket) }
        for await _ in changes {
            announce(to: socket)
            renewal.cancel()
            renewal = Task { await renew(on: socket) }
        }
        renewal.cancel()
    }

    /// After three quarters of the credentials' life, so that a client that is late has valid ones. If none expires, there is nothing to do.
    private func renew(on socket: some SignallingSocket) async {
        guard let life = servers.lifetimeSeconds(for: claims, room: room, origin: origin) else { return }
        while (try? await Task.sleep(for: .seconds(life) * 3 / 4)) != nil { announce(to: socket) }
    }

    private func announce(to socket: some SignallingSocket) { socket.send(ServerMessage.iceServers(current).text) }
}

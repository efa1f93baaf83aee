import AccessTokens
import EdgeSupport

/// The ICE servers that one client is told of, and anew before their credentials expire.
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

    /// How often they are told anew; nil: never. After three quarters of their life, so that a client that is late has good ones.
    var interval: Duration? {
        servers.lifetimeSeconds(for: claims, room: room, origin: origin).map { .seconds($0) * 3 / 4 }
    }

    /// Tells them again and again, until the task is cancelled.
    func refresh(on socket: some SignallingSocket) async {
        guard let interval else { return }
        while (try? await Task.sleep(for: interval)) != nil { socket.send(ServerMessage.iceServers(current).text) }
    }
}

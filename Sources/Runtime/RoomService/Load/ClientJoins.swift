import AccessTokens
import NetworkIO
import Primitives
import Rooms

/// How often each client asks to join: whoever has one token must not use up the joins a second of all others.
struct ClientJoins {
    /// By address, too: one token may be that of a whole audience. An IPv6 network of 64 bits belongs to one household. The room is the token's: where it names
    /// none, whoever asks could name another one each time.
    private struct Client: Hashable {
        let network: String
        let apiKey: String
        let identity: String?
        let room: String?

        init(_ request: JoinRequest) {
            let address = SocketAddress(numeric: request.address)
            network = address.map { $0.isIPv4 ? "\($0.low)" : "\($0.high)::" } ?? request.address
            let claims = request.claims
            (apiKey, identity, room) = (claims.apiKey, claims.identity, claims.video.room)
        }
    }

    /// Twenty a second, far above what a client does that lost its network, or a school behind one address whose pupils share a token …
    static let interval = TimeInterval.milliseconds(50)
    /// … and so many at once.
    static let burst = 100
    /// Of clients so many are remembered; beyond it all are forgotten, which costs an attacker as many networks.
    private static let maximumClients = 4_096

    private var limits: [Client: RateLimit] = [:]

    /// Counts a join; false where its client has asked for too many.
    mutating func take(_ request: JoinRequest, at now: MonotonicTime) -> Bool {
        let client = Client(request)
        if limits.count >= Self.maximumClients, limits[client] == nil { limits = [:] }
        return limits[client, default: RateLimit()].take(every: Self.interval, atOnce: Self.burst, at: now)
    }
}

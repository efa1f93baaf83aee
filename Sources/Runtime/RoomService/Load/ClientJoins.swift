import AccessTokens
import NetworkIO
import Primitives
import Rooms

/// A client, as limits distinguish clients.
///
/// By address, too: a whole audience may share one token. An IPv6 network of 64 bits belongs to one household. The room is the token's: if it names
/// none, a client could name another one each time.
struct ClientMark: Hashable {
    private let network: String
    private let apiKey: String
    private let identity: String?
    private let room: String?

    init(_ claims: AccessClaims, address: String) {
        let numeric = SocketAddress(numeric: address)
        network = numeric.map { $0.isIPv4 ? "\($0.low)" : "\($0.high)::" } ?? address
        (apiKey, identity, room) = (claims.apiKey, claims.identity, claims.video.room)
    }
}

/// How often each client asks to join: one bearer of a token must not use up the joins per second of all others.
struct ClientJoins {
    /// Twenty per second, far more than a client that lost its network needs, or a school behind one address whose pupils share a token …
    static let interval = TimeSpan.milliseconds(50)
    /// … and a burst of this many.
    static let burst = 100
    /// The maximum number of remembered clients; beyond it all are forgotten, which costs an attacker as many networks.
    private static let maximumClients = 4_096

    private var limits: [ClientMark: RateLimit] = [:]

    /// Counts a join; false if its client has asked for too many.
    mutating func accept(_ request: JoinRequest, at now: MonotonicTime) -> Bool {
        let client = ClientMark(request.claims, address: request.address)
        if limits.count >= Self.maximumClients, limits[client] == nil { limits = [:] }
        return limits[client, default: RateLimit()].accept(every: Self.interval, atOnce: Self.burst, at: now)
    }
}

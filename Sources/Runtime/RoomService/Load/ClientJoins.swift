import AccessTokens
import NetworkIO
import Primitives
import Rooms

/// Who asks, as limits tell clients apart.
///
/// By address, too: one token may be that of a whole audience. An IPv6 network of 64 bits belongs to one household. The room is the token's: where it names
/// none, whoever asks could name another one each time.
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

/// How often each client asks to join: whoever has one token must not use up the joins a second of all others.
struct ClientJoins {
    /// Twenty a second, far above what a client does that lost its network, or a school behind one address whose pupils share a token …
    static let interval = TimeInterval.milliseconds(50)
    /// … and so many at once.
    static let burst = 100
    /// Of clients so many are remembered; beyond it all are forgotten, which costs an attacker as many networks.
    private static let maximumClients = 4_096

    private var limits: [ClientMark: RateLimit] = [:]

    /// Counts a join; false where its client has asked for too many.
    mutating func accept(_ request: JoinRequest, at now: MonotonicTime) -> Bool {
        let client = ClientMark(request.claims, address: request.address)
        if limits.count >= Self.maximumClients, limits[client] == nil { limits = [:] }
        return limits[client, default: RateLimit()].accept(every: Self.interval, atOnce: Self.burst, at: now)
    }
}

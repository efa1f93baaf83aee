public import AccessTokens
public import HTTPServing

/// `POST /dev/token`: tokens for the server's own page, so that it works without a login. Only `--dev` registers it.
///
/// A web page that a developer visits can make a browser on this machine send such a request. So the request must come from this machine, from a page of this
/// server (`Origin`, and `Sec-Fetch-Site` of the Fetch Metadata standard), and name the server by an address: through a name that an attacker points
/// here (DNS rebinding), the attacker's page would count as the server's own. Programs that send none of these fields are no pages.
public struct DevelopmentTokens: Sendable {
    private struct Request: Decodable {
        var identity: String
        var room: String?
        var name: String?
        var canPublish: Bool?
        var canSubscribe: Bool?
        var roomAdmin: Bool?
        var roomList: Bool?
        var roomCreate: Bool?
        var hidden: Bool?
    }

    private struct Reply: Encodable { var token: String }

    private let verifier: TokenVerifier
    private let key: String
    private let hosts: Set<String>
    private let clock: @Sendable () -> Int64
    /// A day: a page that stays open overnight still rejoins.
    private static let secondsValid: Int64 = 86_400

    /// Mints with the key called `key` for pages at `host` or a loopback name; `clock` gives seconds since 1970.
    public init(verifier: TokenVerifier, key: String, host: String, clock: @escaping @Sendable () -> Int64) {
        self.verifier = verifier
        self.key = key
        hosts = ["localhost", "127.0.0.1", "[::1]", host.contains(":") ? "[\(host)]" : host]
        self.clock = clock
    }

    /// Adds the route.
    public func register(on router: inout Router) {
        router.route(.post, "/dev/token") { (request) throws(Problem) in
            guard request.isLoopback else {
                throw Problem(403, "loopback_only", "Only clients on this machine may request tokens.")
            }
            guard isFromOwnPage(request) else {
                throw Problem(403, "cross_origin", "Only this server's own page may request tokens.")
            }
            return .json(Reply(token: try mint(try read(request.body))))
        }
    }

    private func isFromOwnPage(_ request: HTTPRequest) -> Bool {
        hosts.contains(Self.host(of: request.authority.lowercased()))
            && request.headers.values("Origin").allSatisfy { $0.lowercased() == request.origin.lowercased() }
            && request.headers.values("Sec-Fetch-Site").allSatisfy { ["same-origin", "none"].contains($0) }
    }

    /// The host of `host:port`, an IPv6 address with its brackets (RFC 3986 section 3.2.2).
    private static func host(of authority: String) -> String {
        guard let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") else { return authority }
        return String(authority[..<colon])
    }

    private func read(_ body: [UInt8]) throws(Problem) -> Request {
        do {
            return try JSONCoding.decode(Request.self, from: body)
        } catch {
            throw Problem(error)
        }
    }

    private func mint(_ request: Request) throws(Problem) -> String {
        var grant = VideoGrant.join(request.room)
        grant.canPublish = request.canPublish
        grant.canSubscribe = request.canSubscribe
        grant.roomAdmin = request.roomAdmin ?? false
        grant.roomList = request.roomList ?? false
        grant.roomCreate = request.roomCreate ?? false
        grant.hidden = request.hidden ?? false
        let now = clock()
        let claims = AccessClaims(
            apiKey: key, identity: request.identity, name: request.name, expiresAt: now + Self.secondsValid,
            issuedAt: now, video: grant)
        do {
            return try verifier.mint(claims)
        } catch {
            throw Problem(error)
        }
    }
}

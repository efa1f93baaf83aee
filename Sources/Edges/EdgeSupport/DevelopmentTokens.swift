public import AccessTokens
public import HTTPServing

/// `POST /dev/token`: tokens for whoever asks, so that the page works without a login. Only `--dev` registers it, and such a
/// server serves nobody but its own machine.
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
    private let clock: @Sendable () -> Int64
    /// A day: a page that stays open overnight still rejoins.
    private static let secondsValid: Int64 = 86_400

    /// Mints with the key called `key`; `clock` gives seconds since 1970.
    public init(verifier: TokenVerifier, key: String, clock: @escaping @Sendable () -> Int64) {
        self.verifier = verifier
        self.key = key
        self.clock = clock
    }

    /// Adds the route.
    public func register(on router: inout Router) {
        router.route(.post, "/dev/token") { (request) throws(Problem) in
            guard request.isLoopback else { throw Problem(403, "loopback_only", "Only for clients on this machine.") }
            return .json(Reply(token: try mint(try read(request.body))))
        }
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
        let claims = AccessClaims(
            apiKey: key, identity: request.identity, name: request.name, expiresAt: clock() + Self.secondsValid,
            video: grant)
        do {
            return try verifier.mint(claims)
        } catch {
            throw Problem(error)
        }
    }
}

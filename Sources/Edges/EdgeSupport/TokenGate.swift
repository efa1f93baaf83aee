public import AccessTokens
import Cryptography
public import HTTPServing
import Primitives
import Rooms

/// Takes the access token out of a request and verifies it.
public struct TokenGate: Sendable {
    private let verifier: Live<TokenVerifier>
    private let clock: @Sendable () -> Int64
    private let isRevoked: @Sendable (AccessClaims) -> Bool

    /// A gate that trusts `verifier`; `clock` gives seconds since 1970, `isRevoked` reports which valid tokens an operator has revoked.
    public init(
        verifier: TokenVerifier, clock: @escaping @Sendable () -> Int64,
        isRevoked: @escaping @Sendable (AccessClaims) -> Bool = { _ in false }
    ) {
        self.init(verifier: Live(verifier), clock: clock, isRevoked: isRevoked)
    }

    /// A gate whose keys may change.
    public init(
        verifier: Live<TokenVerifier>, clock: @escaping @Sendable () -> Int64,
        isRevoked: @escaping @Sendable (AccessClaims) -> Bool = { _ in false }
    ) {
        self.verifier = verifier
        self.clock = clock
        self.isRevoked = isRevoked
    }

    /// The claims of the request's token.
    public func claims(of request: HTTPRequest) throws(Problem) -> AccessClaims {
        guard let token = Self.token(of: request) else { throw Problem(AccessTokenError.missing) }
        do {
            return try claims(of: token)
        } catch {
            throw Problem(error)
        }
    }

    /// The claims of a token that did not come with a request.
    public func claims(of token: String) throws(AccessTokenError) -> AccessClaims {
        let claims = try verifier.value.verify(token, at: clock())
        guard !isRevoked(claims) else { throw .revoked }
        return claims
    }

    /// A token with `claims` that is valid for `seconds` from now, and until `earliest` (seconds since 1970) at least, signed with the key that they name.
    public func mint(
        _ claims: AccessClaims, seconds: Int64, until earliest: Int64 = .min
    ) throws(AccessTokenError) -> String {
        var claims = claims
        claims.notBefore = nil
        claims.issuedAt = clock()
        claims.expiresAt = max(clock() + seconds, earliest)
        return try verifier.value.mint(claims)
    }

    // MARK: - Links

    /// Signs a text that gives access to what `claims` name for `seconds` from now, at the latest until `until` (seconds since 1970); returns also when it
    /// expires. It is no access token: it is signed with a secret that is derived for `purpose` from that of the API key.
    public func sign(
        _ claims: AccessClaims, for purpose: String, seconds: Int64, until latest: Int64 = .max
    ) throws(AccessTokenError) -> (text: String, expiresAt: Int64) {
        var claims = claims
        claims.expiresAt = min(clock() + seconds, latest)
        return (try signer(for: purpose).mint(claims), claims.expiresAt)
    }

    /// The claims of a text that was signed for `purpose`. Revoking the token by which it was signed revokes it, too.
    public func claims(ofSigned text: String, for purpose: String) throws(AccessTokenError) -> AccessClaims {
        let claims = try signer(for: purpose).verify(text, at: clock())
        guard !isRevoked(claims) else { throw .revoked }
        return claims
    }

    private func signer(for purpose: String) -> TokenVerifier {
        verifier.value.derived { secret in
            Digest.hmacSHA256(key: Array(secret.utf8), Array(purpose.utf8)).hexadecimal
        }
    }

    // MARK: - Requests

    /// The claims of a token that is valid for `room`, if a room is requested.
    public func claims(of request: HTTPRequest, room: String?) throws(Problem) -> AccessClaims {
        let claims = try claims(of: request)
        try Self.check(claims, areFor: room)
        return claims
    }

    /// Refuses claims that are valid for another room than `room`.
    public static func check(_ claims: AccessClaims, areFor room: String?) throws(Problem) {
        do throws(RoomError) {
            try RoomNames.checkMatch(granted: claims.video.room, asked: room)
        } catch {
            throw Problem(error)
        }
    }

    /// Refuses a token of one room that may not move participants to `destination`.
    public static func check(_ claims: AccessClaims, mayMoveTo destination: String) throws(Problem) {
        if claims.video.destinationRoom == destination { return }
        try check(claims, areFor: destination)
    }

    /// Refuses a request without a valid token before its body is read.
    public func admit(_ request: HTTPRequest) throws(Problem) -> Bool {
        _ = try claims(of: request)
        return true
    }

    /// Refuses a request on an already opened resource whose token is wrong.
    ///
    /// The unguessable URL gives access to the resource, so a token may be absent, and one that has expired since is enough to end what
    /// it began. Returns whether there was one.
    @discardableResult
    public func checkIfPresent(_ request: HTTPRequest) throws(Problem) -> Bool {
        guard let token = Self.token(of: request) else { return false }
        do {
            _ = try claims(of: token)
        } catch .expired {
            return true
        } catch {
            throw Problem(error)
        }
        return true
    }

    /// The token in `Authorization: Bearer …` (RFC 6750 section 2.1), else in the query's `access_token` (section 2.3), because browsers cannot set
    /// fields on a WebSocket.
    static func token(of request: HTTPRequest) -> String? {
        if let field = request.headers["Authorization"] {
            let parts = field.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
            // Blanks before it are tolerated; with one inside it, two readers would see different tokens.
            let token = parts[1].drop { $0 == " " }
            return token.isEmpty || token.contains(" ") ? nil : String(token)
        }
        guard let token = request.query["access_token"], !token.isEmpty else { return nil }
        return token
    }
}

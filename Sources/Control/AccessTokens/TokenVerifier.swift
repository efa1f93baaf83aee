/// Verifies and mints access tokens for a fixed set of keys.
///
/// The algorithm is pinned to HS256 before a key is looked up. libjwt compares signatures in constant time, but does not
/// check `exp` and `nbf`: the verifier does, with the time as an argument.
public struct TokenVerifier: Sendable {
    private let keys: [APIKey]
    /// The tolerated clock skew, in seconds.
    public let leewaySeconds: Int64

    /// A verifier that knows `keys`.
    public init(keys: [APIKey], leewaySeconds: Int64 = 60) {
        self.keys = keys
        self.leewaySeconds = leewaySeconds
    }

    /// A verifier of texts that are not access tokens: its keys have other secrets, which `derive` makes from these, and it tolerates no clock skew.
    public func derived(_ derive: (_ secret: String) -> String) -> Self {
        Self(keys: keys.map { APIKey(name: $0.name, secret: derive($0.secret)) }, leewaySeconds: 0)
    }

    /// The claims of `token` if it is valid at `now` (seconds since 1970).
    public func verify(_ token: String, at now: Int64) throws(AccessTokenError) -> AccessClaims {
        guard !token.isEmpty else { throw .missing }
        guard token.utf8.count <= AccessTokenLimits.tokenBytes else { throw .tooLong }
        guard Self.hasCompactForm(token) else { throw .malformed }
        guard let unverified = JSONWebToken(decoding: token, secret: nil) else { throw .malformed }
        guard unverified.asksForHS256 else { throw .algorithmNotAllowed }
        guard let stated = unverified.claims else { throw .malformed }
        guard let issuer = try stated.string("iss", limit: AccessTokenLimits.identityBytes),
            let key = keys.first(where: { $0.name == issuer })
        else { throw .unknownKey }
        guard let verified = JSONWebToken(decoding: token, secret: key.secret), verified.wasHS256 else {
            throw .badSignature
        }
        guard let proven = verified.claims else { throw .malformed }
        let claims = try AccessClaims(proven, issuer: issuer)
        guard now < claims.expiresAt.addingLeeway(leewaySeconds) else { throw .expired }
        if let notBefore = claims.notBefore, now.addingLeeway(leewaySeconds) < notBefore { throw .notYetValid }
        return claims
    }

    /// A signed token with `claims`, by the key that `claims.apiKey` names.
    public func mint(_ claims: AccessClaims) throws(AccessTokenError) -> String {
        guard let key = keys.first(where: { $0.name == claims.apiKey }) else { throw .unknownKey }
        guard claims.areWithinLimits, let members = JSONObject(), claims.write(into: members),
            let token = JSONWebToken(members), let text = token.signed(secret: key.secret),
            text.utf8.count <= AccessTokenLimits.tokenBytes
        else { throw .cannotSign }
        return text
    }

    /// A signed token that vouches for a message by its claim `sha256`, the message's SHA-256 in base64; nil if the key is unknown. Times in seconds
    /// since 1970.
    public func mintBodyToken(key name: String, sha256: String, issuedAt: Int64, expiresAt: Int64) -> String? {
        guard let key = keys.first(where: { $0.name == name }), let members = JSONObject(),
            members.set("iss", name), members.set("nbf", issuedAt), members.set("exp", expiresAt),
            members.set("sha256", sha256), let token = JSONWebToken(members)
        else { return nil }
        return token.signed(secret: key.secret)
    }

    /// Three parts of base64url; anything else never reaches the library.
    private static func hasCompactForm(_ token: String) -> Bool {
        var dots = 0
        for byte in token.utf8 {
            switch byte {
            case UInt8(ascii: "."): dots += 1
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                continue
            default: return false
            }
        }
        return dots == 2
    }
}

extension Int64 {
    /// Saturates, so that a token's time cannot overflow.
    fileprivate func addingLeeway(_ leeway: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(leeway)
        return overflow ? .max : sum
    }
}

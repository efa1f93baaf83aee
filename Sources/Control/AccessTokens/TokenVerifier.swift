/// Verifies and mints access tokens for a fixed set of keys.
public struct TokenVerifier: Sendable {
    let keys: [APIKey]
    /// How far clocks may differ, in seconds.
    public let leewaySeconds: Int64

    /// A verifier that knows `keys`.
    public init(keys: [APIKey], leewaySeconds: Int64 = 60) {
        self.keys = keys
        self.leewaySeconds = leewaySeconds
    }

    /// The claims of `token` when it is good at `now` (seconds since 1970).
    public func verify(_ token: String, at now: Int64) throws(AccessTokenError) -> AccessClaims {
        throw .malformed
    }

    /// A signed token with `claims`, by the key that `claims.apiKey` names.
    public func mint(_ claims: AccessClaims) throws(AccessTokenError) -> String {
        throw .cannotSign
    }
}

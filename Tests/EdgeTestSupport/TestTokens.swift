public import AccessTokens
public import EdgeSupport

/// A key, a clock that stands still, and tokens made with them.
public enum TestTokens {
    /// Seconds since 1970 that every test sees.
    public static let now: Int64 = 1_790_000_000
    public static let key = APIKey(name: "testkey", secret: "a-secret-that-is-long-enough-for-hs256")
    public static let verifier = TokenVerifier(keys: [key])
    public static let gate = TokenGate(verifier: verifier, clock: { now })

    /// A token of `identity` with what `grant` says, good for an hour.
    public static func token(
        _ identity: String?, _ grant: VideoGrant = .join(nil), expiresAt: Int64 = now + 3_600
    ) throws -> String {
        try verifier.mint(AccessClaims(apiKey: key.name, identity: identity, expiresAt: expiresAt, video: grant))
    }

    /// A grant that may do everything an operator does.
    public static var operatorGrant: VideoGrant {
        var grant = VideoGrant()
        grant.roomList = true
        grant.roomCreate = true
        grant.roomAdmin = true
        return grant
    }
}

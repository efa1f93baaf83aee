import AccessTokens
import Testing

@Suite("Token verifier")
struct TokenVerifierTests {
    static let key = APIKey(name: "key1", secret: "secret-secret-secret-secret-0001")
    static let other = APIKey(name: "key2", secret: "secret-secret-secret-secret-0002")
    static let now: Int64 = 1_700_000_000
    let verifier = TokenVerifier(keys: [key, other])

    @Test("A minted token is verified, and every claim survives")
    func roundTrip() throws {
        var grant = VideoGrant.join("R1")
        grant.canPublish = false
        grant.canSubscribe = true
        grant.canPublishSources = [.camera, .screenShareAudio]
        grant.hidden = true
        grant.roomAdmin = true
        grant.roomRecord = true
        let claims = AccessClaims(
            apiKey: "key2", identity: "alice", name: "Alice \"Ä\" 🦅", metadata: "{\"a\":[1]}",
            expiresAt: Self.now + 60, notBefore: Self.now - 5, issuedAt: Self.now - 4, video: grant)
        #expect(try verifier.verify(verifier.mint(claims), at: Self.now) == claims)
    }

    @Test("Absent permissions stay absent: they mean allowed, not denied")
    func threeStates() throws {
        let claims = AccessClaims(apiKey: "key1", identity: "a", expiresAt: Self.now + 1, video: .join(nil))
        let read = try verifier.verify(verifier.mint(claims), at: Self.now)
        #expect(read.video.canPublish == nil && read.video.canSubscribe == nil && read.video.canPublishSources == nil)
    }

    @Test("A grant without any publish source still has none when it is minted again (found by fuzzing)")
    func noSources() throws {
        var grant = VideoGrant.join("R1")
        grant.canPublishSources = []
        let claims = AccessClaims(apiKey: "key1", identity: "a", expiresAt: Self.now + 1, video: grant)
        #expect(try verifier.verify(verifier.mint(claims), at: Self.now).video.canPublishSources == [])
    }

    @Test(
        "exp and nbf are checked with leeway",
        arguments: [
            (exp: Int64(0), nbf: Int64?.none, error: AccessTokenError?.none),
            (-59, nil, nil), (-60, nil, .expired), (-1000, nil, .expired),
            (100, 60, nil), (100, 61, .notYetValid), (100, -100, nil), (-61, 1000, .expired),
        ])
    func times(exp: Int64, nbf: Int64?, error: AccessTokenError?) throws {
        let claims = AccessClaims(
            apiKey: "key1", identity: "a", expiresAt: Self.now + exp, notBefore: nbf.map { Self.now + $0 })
        let token = try verifier.mint(claims)
        if let error {
            #expect(throws: error) { try verifier.verify(token, at: Self.now) }
        } else {
            #expect(try verifier.verify(token, at: Self.now) == claims)
        }
    }

    @Test("A token signed with another secret, with a changed claim or a truncated signature is refused")
    func signatures() throws {
        let claims = AccessClaims(apiKey: "key1", identity: "a", expiresAt: Self.now + 60)
        let forger = TokenVerifier(keys: [APIKey(name: "key1", secret: "another-secret-another-secret-00")])
        #expect(throws: AccessTokenError.badSignature) {
            try verifier.verify(forger.mint(claims), at: Self.now)
        }
        let good = try verifier.mint(claims)
        let parts = good.split(separator: ".")
        let changed = "\(parts[0]).\(try verifier.mint(claims, identity: "b").split(separator: ".")[1]).\(parts[2])"
        #expect(throws: AccessTokenError.badSignature) { try verifier.verify(changed, at: Self.now) }
        for cut in [1, 4, 20] {
            #expect(throws: AccessTokenError.badSignature) {
                try verifier.verify(String(good.dropLast(cut)), at: Self.now)
            }
        }
        #expect(throws: (any Error).self) { try verifier.verify("\(parts[0]).\(parts[1]).", at: Self.now) }
    }

    @Test("An issuer without a key is refused")
    func unknownKey() throws {
        let other = TokenVerifier(keys: [APIKey(name: "key3", secret: Self.key.secret)])
        let token = try other.mint(AccessClaims(apiKey: "key3", identity: "a", expiresAt: Self.now + 60))
        #expect(throws: AccessTokenError.unknownKey) { try verifier.verify(token, at: Self.now) }
    }

    @Test(
        "Malformed tokens are refused with a reason",
        arguments: [
            ("", AccessTokenError.missing), ("a", .malformed), ("a.b.c", .malformed), ("..", .malformed),
            ("a b.c.d", .malformed), ("eyJhbGciOiJIUzI1NiJ9.e30.e30.e30", .malformed), ("ä.ö.ü", .malformed),
            // {"alg":"none"}.{"iss":"key1","sub":"a","exp":1800000000}
            ("eyJhbGciOiJub25lIn0.eyJpc3MiOiJrZXkxIiwic3ViIjoiYSIsImV4cCI6MTgwMDAwMDAwMH0.", .algorithmNotAllowed),
            // {"alg":"HS512","typ":"JWT"}
            ("eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIn0.AAAA", .algorithmNotAllowed),
            // {"alg":"RS256","typ":"JWT"}
            ("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIn0.AAAA", .algorithmNotAllowed),
        ])
    func malformed(token: String, error: AccessTokenError) {
        #expect(throws: error) { try verifier.verify(token, at: Self.now) }
    }

    @Test("A token longer than the limit is refused without parsing")
    func tooLong() {
        #expect(throws: AccessTokenError.tooLong) {
            try verifier.verify(String(repeating: "a", count: 20_000), at: Self.now)
        }
    }

    @Test("Minting refuses claims that are too long")
    func limits() {
        for claims in [
            AccessClaims(apiKey: "key1", identity: String(repeating: "x", count: 1_025), expiresAt: 1),
            AccessClaims(apiKey: "key1", name: String(repeating: "x", count: 1_025), expiresAt: 1),
            AccessClaims(apiKey: "key1", metadata: String(repeating: "x", count: 8_193), expiresAt: 1),
        ] { #expect(throws: AccessTokenError.cannotSign) { try verifier.mint(claims) } }
    }

    @Test("Descriptions never contain secrets")
    func descriptions() {
        #expect("\(Self.key)" == "APIKey(key1)")
        #expect(String(reflecting: Self.key) == "APIKey(key1)")
    }
}

extension TokenVerifier {
    fileprivate func mint(_ claims: AccessClaims, identity: String) throws -> String {
        var claims = claims
        claims.identity = identity
        return try mint(claims)
    }
}

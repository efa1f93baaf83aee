import AccessTokens
import EdgeTestSupport
import HTTPServing
import Testing

@testable import EdgeSupport

@Suite("Token gate")
struct TokenGateTests {
    @Test(
        "The token is taken from Authorization, else from the query",
        arguments: [
            (["Authorization": "Bearer abc"], "/x", "abc"),
            (["authorization": "bearer abc"], "/x", "abc"),
            (["Authorization": "Bearer abc"], "/x?access_token=def", "abc"),
            ([:], "/x?access_token=def", "def"),
            (["Authorization": "Basic abc"], "/x?access_token=def", nil),
            (["Authorization": "Bearer "], "/x", nil),
            (["Authorization": "Bearer a b"], "/x", nil),
            ([:], "/x?access_token=", nil),
            ([:], "/x", nil),
        ] as [(HTTPHeaders, String, String?)])
    func extraction(headers: HTTPHeaders, target: String, expected: String?) throws {
        #expect(TokenGate.token(of: try request(.get, target, headers: headers)) == expected)
    }

    @Test(
        "A valid token gives its claims; a missing one is 401 with a bare challenge, an invalid one 401 with invalid_token"
    )
    func verification() throws {
        let gate = TestTokens.gate
        let good = try TestTokens.token("ada")
        #expect(try gate.claims(of: request(.get, "/x", token: good)).identity == "ada")
        let missing = #expect(throws: Problem.self) { try gate.claims(of: request(.get, "/x")) }
        #expect(missing?.status == 401)
        #expect(missing?.headers["WWW-Authenticate"] == "Bearer realm=\"martlet\"")
        let wrong = #expect(throws: Problem.self) { try gate.claims(of: request(.get, "/x", token: good + "A")) }
        #expect(wrong?.code == "token_bad_signature")
        #expect(wrong?.headers["WWW-Authenticate"]?.contains("invalid_token") == true)
    }

    @Test(
        "What is signed for a purpose says what it said until the second at which it ends; for another purpose, by another key, once revoked or as an access token it is nothing"
    )
    func signing() throws {
        var claims = AccessClaims(apiKey: TestTokens.key.name, identity: "ada", expiresAt: 0, tokenID: "t1")
        claims.attributes = ["file": "a.mp4"]
        let (text, end) = try TestTokens.gate.sign(claims, for: "films", seconds: 60)
        #expect(end == TestTokens.now + 60)
        func gate(at moment: Int64, keys: [APIKey] = [TestTokens.key], revoked: Bool = false) -> TokenGate {
            TokenGate(
                verifier: TokenVerifier(keys: keys), clock: { moment }, isRevoked: { revoked && $0.tokenID == "t1" })
        }
        let read = try gate(at: end - 1).claims(ofSigned: text, for: "films")
        #expect(read.attributes == ["file": "a.mp4"] && read.identity == "ada" && read.apiKey == TestTokens.key.name)
        #expect(throws: AccessTokenError.expired) { try gate(at: end).claims(ofSigned: text, for: "films") }
        #expect(throws: AccessTokenError.badSignature) { try TestTokens.gate.claims(ofSigned: text, for: "music") }
        #expect(throws: AccessTokenError.badSignature) { try TestTokens.gate.claims(of: text) }
        let token = try TestTokens.token("ada")
        #expect(throws: AccessTokenError.badSignature) { try TestTokens.gate.claims(ofSigned: token, for: "films") }
        let other = APIKey(name: TestTokens.key.name, secret: "another-secret-that-is-long-enough-for-it")
        #expect(throws: AccessTokenError.badSignature) {
            try gate(at: end - 1, keys: [other]).claims(ofSigned: text, for: "films")
        }
        #expect(throws: AccessTokenError.unknownKey) {
            try gate(at: end - 1, keys: []).claims(ofSigned: text, for: "films")
        }
        #expect(throws: AccessTokenError.revoked) {
            try gate(at: end - 1, revoked: true).claims(ofSigned: text, for: "films")
        }
    }

    @Test("An open resource accepts no token, a valid one and an expired one, but no forged one")
    func openedResource() throws {
        let gate = TestTokens.gate
        try gate.checkIfPresent(request(.delete, "/x"))
        try gate.checkIfPresent(request(.delete, "/x", token: TestTokens.token("ada")))
        try gate.checkIfPresent(request(.delete, "/x", token: TestTokens.token("ada", expiresAt: TestTokens.now - 900)))
        #expect(throws: Problem.self) { try gate.checkIfPresent(request(.delete, "/x", token: "a.b.c")) }
    }
}

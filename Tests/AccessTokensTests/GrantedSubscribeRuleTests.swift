import AccessTokens
import Testing

/// Tokens made by Python with key "key1" and the secret of `TokenVerifierTests`.
@Suite("Subscribe rules of tokens")
struct GrantedSubscribeRuleTests {
    let verifier = TokenVerifier(keys: [TokenVerifierTests.key])

    static let good =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
        + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiaW5jbHVkZSIsImFsbCI6dHJ1ZX0seyJhY3Rpb24iOiJleGNsdWRlIiwia2luZCI6InZpZGV"
        + "vIn0seyJhY3Rpb24iOiJpbmNsdWRlIiwicGFydGljaXBhbnQiOiJ0ZWFjaGVyIn0seyJhY3Rpb24iOiJpbmNsdWRlIiwidHJhY2s"
        + "iOiJUUl8xIn0seyJhY3Rpb24iOiJleGNsdWRlIiwic291cmNlIjoic2NyZWVuQXVkaW8ifV19fQ.uzm5PJyZgKlvwLcB9Ua_PIn_"
        + "OZ_1C8n6IdNKosHN54Y"

    @Test("I3: subscribe rules of a token issued by another library are read in their order and survive minting")
    func read() throws {
        let claims = try verifier.verify(Self.good, at: TokenVerifierTests.now)
        #expect(
            claims.video.subscribeRules == [
                .init(includes: true, .all), .init(includes: false, .kind(.video)),
                .init(includes: true, .participant("teacher")), .init(includes: true, .track("TR_1")),
                .init(includes: false, .source(.screenAudio)),
            ])
        #expect(try verifier.verify(verifier.mint(claims), at: TokenVerifierTests.now) == claims)
        var none = claims
        none.video.subscribeRules = []
        #expect(try verifier.verify(verifier.mint(none), at: TokenVerifierTests.now).video.subscribeRules == [])
        none.video.subscribeRules = [GrantedSubscribeRule](repeating: .init(includes: true, .all), count: 65)
        #expect(throws: AccessTokenError.cannotSign) { try verifier.mint(none) }
    }

    @Test(
        "I3: a subscribe rule that is not understood makes the token bad: without it more would be received",
        arguments: [
            (
                "no list",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6eyJhY3Rpb24iOiJpbmNsdWRlIiwiYWxsIjp0cnVlfX19.pLqCPUEWaxnAZemhI_U5iu1FjXeQqfXJbpNlr56Av6"
                    + "Q"
            ),
            (
                "not an object",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6WyJhbGwiXX19.KSWYUmE95Cko-dsVpzSg7-gMWho8P4vbEBieg6CSLEw"
            ),
            (
                "no action",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWxsIjp0cnVlfV19fQ.b4xYTfvrx6aj61UQo6XJNExHrEmSaTQIAs5icHVxqOU"
            ),
            (
                "another action",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiYWxsb3ciLCJhbGwiOnRydWV9XX19.znoxRLSpkGcr_pI7Yw9-TbwY_rsU8AvHNaufhLSZyb"
                    + "A"
            ),
            (
                "nothing to match",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiaW5jbHVkZSJ9XX19.nSUzGYlkL87NVPRKyMl16UHAzt7bSDhJLuo9xYNAZwQ"
            ),
            (
                "two to match",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiZXhjbHVkZSIsImtpbmQiOiJ2aWRlbyIsImFsbCI6dHJ1ZX1dfX0.SisbYieyUn7jlO7Fz0i"
                    + "zSyZ0jKboxscr2q9HCGAVBGw"
            ),
            (
                "a member that no rule has",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiaW5jbHVkZSIsInJvbGUiOiJ4In1dfX0.945igQRIrSfxwN4DspJJO5ljDlMNaMpz1tZVpz_"
                    + "KBEM"
            ),
            (
                "all: false",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiaW5jbHVkZSIsImFsbCI6ZmFsc2V9XX19.ji0SK62ZjW7SyqcZl7J9Mcp2N2CnJ5G4R-hu2s"
                    + "NZOBs"
            ),
            (
                "an unknown kind",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiZXhjbHVkZSIsImtpbmQiOiJkYXRhIn1dfX0.TYBa0WI8aAOwzQ3I1LedCddRXh4WY3_I2Dr"
                    + "L7EsmTIs"
            ),
            (
                "an unknown source",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrZXkxIiwiZXhwIjoxNzAwMDAwMDYwLCJ2aWRlbyI6eyJzdWJzY3J"
                    + "pYmVSdWxlcyI6W3siYWN0aW9uIjoiZXhjbHVkZSIsInNvdXJjZSI6InNjcmVlbl9zaGFyZSJ9XX19.l5iTQcReE_a8UVXJ4uWHGq"
                    + "hX7iRK607bv1ZkoEhVl4M"
            ),
        ])
    func refused(what: String, token: String) {
        #expect(throws: AccessTokenError.badClaim, "\(what)") {
            try verifier.verify(token, at: TokenVerifierTests.now)
        }
    }
}

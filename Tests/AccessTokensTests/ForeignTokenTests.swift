import AccessTokens
import Testing

/// Tokens made by Python with key "key1" and the secret of `TokenVerifierTests`.
@Suite("Tokens issued by other libraries")
struct ForeignTokenTests {
    let verifier = TokenVerifier(keys: [TokenVerifierTests.key])

    static let full =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiAiYm9iIiwgIm5hbWUiOiAiQm9iIiw"
        + "gImV4cCI6IDE3MDAwMDAwNjAsICJuYmYiOiAxNjk5OTk5OTYwLCAidmlkZW8iOiB7InJvb20iOiAiUiIsICJyb29tSm9pbiI6IHR"
        + "ydWUsICJjYW5QdWJsaXNoIjogdHJ1ZSwgImNhblN1YnNjcmliZSI6IGZhbHNlLCAiY2FuUHVibGlzaERhdGEiOiB0cnVlLCAiY2F"
        + "uUHVibGlzaFNvdXJjZXMiOiBbImNhbWVyYSIsICJtaWNyb3Bob25lIiwgImhvbG9ncmFtIl0sICJhZ2VudCI6IHRydWUsICJkZXN"
        + "0aW5hdGlvblJvb20iOiAiIn0sICJzaXAiOiB7ImFkbWluIjogdHJ1ZX0sICJhdHRyaWJ1dGVzIjogeyJhIjogImIifX0.qDLiVcp"
        + "-r13fhqMxMMoWRK55cEypQtw5PXB_YxuAY3M"
    static let fraction =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiAiYm9iIiwgImV4cCI6IDE3MDAwMDA"
        + "wNjAuNzV9.6p5GD2BA_retrSYRpYf5y6fRdOXfRrl03mvjWeLrUsM"
    static let nulls =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiAiYm9iIiwgImV4cCI6IDE3MDAwMDA"
        + "wNjAsICJ2aWRlbyI6IHsiY2FuUHVibGlzaCI6IG51bGwsICJyb29tIjogIiJ9fQ.VK16MaqxFI35sHLkZ4AhQRxOfrLNIDI4lGa6"
        + "8UqqakE"
    static let noVideo =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAxNzAwMDAwMDYwfQ.f5b1VxAOi1YB"
        + "8Jh_W585VKbORAiVoAGwr_IJofj_GDI"
    static let noExpiry =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiAiYm9iIn0.96Ws5VSCx8SfESkZIqw"
        + "z62X9VLgE0MjdCYXaQq40HBs"
    static let textExpiry =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAic29vbiJ9.Ed8S1x8JMWxhZt0cor"
        + "RvgftMjcczICMmoofA6Pc6bK4"
    static let numberIdentity =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiA3LCAiZXhwIjogMTcwMDAwMDA2MH0"
        + ".5oa44M0i8c2C7lvW8aeXEDk6Y2ii-u7hWSOiMVfKQIg"
    static let longIdentity =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJzdWIiOiAieHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh"
        + "4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHgiLCAiZXhwIjogMTcwMDAwMDA2MH0.uq4oU43hfFz-XI_9qtqOn6R41mSjA7e"
        + "STuyR8le4HWg"
    static let videoText =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAxNzAwMDAwMDYwLCAidmlkZW8iOiA"
        + "iYWxsIn0.xLVhAI10KAQ4CKsjFoZ82Zyop-Gp8frux95cc6hyLC0"
    static let videoList =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAxNzAwMDAwMDYwLCAidmlkZW8iOiB"
        + "bMV19.9T64ULvjY-g5cadkdiYFhg4CMxo3YnFxQ1QB4R3dMs4"
    static let joinText =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAxNzAwMDAwMDYwLCAidmlkZW8iOiB"
        + "7InJvb21Kb2luIjogInllcyJ9fQ.lxC1suw0BwXHD6ESFyKFXFmlPbZdwMB1w7RieXdQQF0"
    static let sourceNumbers =
        "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAia2V5MSIsICJleHAiOiAxNzAwMDAwMDYwLCAidmlkZW8iOiB"
        + "7ImNhblB1Ymxpc2hTb3VyY2VzIjogWzEsIDJdfX0.Y-MM7ltCWnrTY2dbZwkJW7nyiIZla8JfaAfzuqUvduo"

    @Test("Grants are read; unknown members and sources grant nothing and do not invalidate the token")
    func full() throws {
        let claims = try verifier.verify(Self.full, at: TokenVerifierTests.now)
        #expect(claims.identity == "bob" && claims.name == "Bob" && claims.notBefore == 1_699_999_960)
        #expect(claims.video.room == "R" && claims.video.roomJoin)
        #expect(claims.video.canPublish == true && claims.video.canSubscribe == false)
        #expect(claims.video.canPublishSources == [.camera, .microphone])
    }

    @Test("Fractional expiry, null permissions and absent grants are accepted")
    func lenient() throws {
        #expect(try verifier.verify(Self.fraction, at: TokenVerifierTests.now).expiresAt == 1_700_000_060)
        let nulls = try verifier.verify(Self.nulls, at: TokenVerifierTests.now)
        #expect(nulls.video.canPublish == nil && nulls.video.room == "")
        #expect(try verifier.verify(Self.noVideo, at: TokenVerifierTests.now).video == VideoGrant())
    }

    @Test(
        "Claims of the wrong type or size are refused with a reason",
        arguments: [
            (noExpiry, AccessTokenError.noExpiry), (textExpiry, .badClaim), (numberIdentity, .badClaim),
            (longIdentity, .badClaim), (videoText, .badClaim), (videoList, .badClaim), (joinText, .badClaim),
            (sourceNumbers, .badClaim),
        ])
    func strict(token: String, error: AccessTokenError) {
        #expect(throws: error) { try verifier.verify(token, at: TokenVerifierTests.now) }
    }
}

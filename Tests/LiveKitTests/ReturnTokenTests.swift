import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Testing

@testable import LiveKit

@Suite("Tokens with which clients come back")
struct ReturnTokenTests {
    @Test("I8: a token for the room that its bearer was moved to lets it in, and lets it do nothing there by the API")
    func moved() throws {
        var grant = TestTokens.operatorGrant
        (grant.roomJoin, grant.roomRecord, grant.canPublish) = (true, true, false)
        (grant.room, grant.destinationRoom) = ("hall", "booth")
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: "ada", expiresAt: TestTokens.now + 60, tokenID: "t-1", video: grant)
        let own = try #require(TestTokens.gate.returnToken(claims, room: "hall"))
        #expect(try TestTokens.gate.claims(of: own).video == grant, "of its own room nothing changes")
        let other = try #require(TestTokens.gate.returnToken(claims, room: "booth"))
        let read = try TestTokens.gate.claims(of: other)
        var wanted = VideoGrant.join("booth")
        wanted.canPublish = false
        #expect(read.video == wanted && read.identity == "ada" && read.tokenID == "t-1")
    }
}

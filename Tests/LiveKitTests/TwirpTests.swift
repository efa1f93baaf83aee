import AccessTokens
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import Testing

@testable import LiveKit

@Suite("LiveKit's server API")
struct TwirpTests {
    @Test("Tokens that may join, of which every participant has one, do not use up the calls of servers")
    func callLimit() async throws {
        var routes = Router()
        TwirpEdge(context: TestRooms().context, callsPerSecond: Live(5)).register(on: &routes)
        let router = routes
        func status(_ grant: VideoGrant) async throws -> Int {
            let token = try TestTokens.token("ada", grant)
            let list = try request(
                .post, "/twirp/livekit.RoomService/ListRooms", token: token, type: "application/json", body: "{}")
            return await router.handle(list).status
        }
        for _ in 0..<10 { #expect(try await status(.join(nil)) == 401) }
        #expect(try await status(.join(nil)) == 429)
        #expect(try await status(TestTokens.operatorGrant) == 200)
    }
}

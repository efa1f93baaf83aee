import AccessTokens
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import RoomService
import Rooms
import Testing

@testable import ControlAPI

@Suite("Control API: past sessions and histories")
struct SessionTests {
    private let api = TestAPI()

    private func status(_ target: String, room: String?) async throws -> Int {
        var grant = VideoGrant()
        grant.room = room
        grant.roomAdmin = true
        return await api.answer(try request(.get, target, token: TestTokens.token("m", grant))).status
    }

    @Test("I6: a moderator of one room is shown that room's past sessions, and no others'")
    func permissions() async throws {
        #expect(try await api.ask(.get, "/v1/sessions").members["sessions"] as? [String] == [])
        #expect(try await status("/v1/sessions", room: "R") == 200)
        #expect(try await status("/v1/sessions?room=R", room: "R") == 200)
        #expect(try await status("/v1/sessions?room=Q", room: "R") == 403)
        #expect(try await status("/v1/sessions/PA_unknown", room: nil) == 404)
        #expect(try await status("/v1/sessions/PA_unknown?room=R", room: "R") == 404)
        #expect(try await status("/v1/sessions/PA_unknown?room=Q", room: "R") == 403)
        #expect(try await status("/v1/sessions/PA_unknown/history?room=Q", room: "R") == 403)
        #expect(try await api.ask(.get, "/v1/sessions?before=1000-1").status == 200)
        for query in ["limit=0", "limit=x", "before=5", "before=x-1", "before=-1-1"] {
            #expect(try await api.ask(.get, "/v1/sessions?\(query)").status == 400, "\(query)")
        }
        #expect(try await status("/v1/rooms/R/participants/ada/history", room: "Q") == 403)
        #expect(try await api.ask(.get, "/v1/rooms/R/participants/ada/history").status == 404)
    }
}

import AccessTokens
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import Primitives
import RoomService
import Synchronization
import Testing

@testable import ControlAPI

@Suite("Control API: limit of calls")
struct CallLimitTests {
    @Test(
        "I10: beyond its calls a key gets 429 with Retry-After, calls without a good token do not count, and a second later it may go on"
    )
    func limited() async throws {
        let api = TestAPI(callsPerSecond: 5)
        for _ in 0..<10 { #expect(try await api.ask(.get, "/v1/rooms").status == 200) }
        let refused = try await api.ask(.get, "/v1/rooms")
        #expect(refused.status == 429 && refused.code == "rate_limited")
        #expect(refused.response.headers["Retry-After"] == "1")
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 429, "whatever the call")
        api.rooms.plane.pass(.seconds(1))
        for _ in 0..<5 { #expect(try await api.ask(.get, "/v1/rooms").status == 200) }
        #expect(try await api.ask(.get, "/v1/rooms").status == 429)
        let counts = api.rooms.context.calls.counts
        #expect(counts.refusals["rate_limited"] == 3)
        #expect(counts.times["GET /v1/rooms"]?.counts.reduce(0, +) == 17)
        #expect(counts.times["POST /v1/rooms"]?.counts.reduce(0, +) == 1)
        let unauthorized = try request(.get, "/v1/rooms", token: "wrong")
        #expect(await api.answer(unauthorized).status == 401)
    }

    @Test("Tokens that may join, of which every participant has one, do not use up the calls of operators")
    func participants() async throws {
        let api = TestAPI(callsPerSecond: 5)
        for _ in 0..<10 { #expect(try await api.ask(.get, "/v1/rooms", grant: .join(nil)).status == 403) }
        #expect(try await api.ask(.get, "/v1/rooms", grant: .join(nil)).status == 429)
        #expect(try await api.ask(.get, "/v1/rooms").status == 200)
        for index in 0..<10 {
            #expect(try await api.ask(.post, "/v1/checks", grant: .join("room \(index)")).status == 201)
        }
        #expect(try await api.ask(.post, "/v1/checks", grant: .join(nil)).status == 429)
        #expect(try await api.ask(.get, "/v1/rooms").status == 200)
    }

    @Test("Participants that moderate their room do not use up the calls of operators")
    func moderators() async throws {
        let api = TestAPI(callsPerSecond: 5)
        _ = try await api.ask(.put, "/v1/rooms/hall")
        var grant = VideoGrant.join("hall")
        grant.roomAdmin = true
        for _ in 0..<10 { #expect(try await api.ask(.get, "/v1/rooms/hall", grant: grant).status == 200) }
        #expect(try await api.ask(.get, "/v1/rooms/hall", grant: grant).status == 429)
        for _ in 0..<9 { #expect(try await api.ask(.get, "/v1/rooms/hall").status == 200) }
        #expect(try await api.ask(.get, "/v1/rooms/hall").status == 429)
    }

    @Test("Each key has its own budget")
    func keys() {
        let limit = CallLimit(perSecond: Live(1))
        let now = MonotonicTime(milliseconds: 5_000)
        #expect(limit.accept("a", at: now) && limit.accept("a", at: now) && !limit.accept("a", at: now))
        #expect(limit.accept("b", at: now))
    }

    @Test("A limit that is raised while the server runs holds from the next call on")
    func raised() {
        let perSecond = Live(1)
        let limit = CallLimit(perSecond: perSecond)
        let (now, later) = (MonotonicTime(milliseconds: 5_000), MonotonicTime(milliseconds: 6_000))
        #expect(limit.accept("a", at: now) && limit.accept("a", at: now) && !limit.accept("a", at: now))
        perSecond.value = 10
        // One second of the two that a key may be ahead is left.
        #expect((0..<11).map { _ in limit.accept("a", at: later) } == Array(repeating: true, count: 10) + [false])
    }
}

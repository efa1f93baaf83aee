import EdgeTestSupport
import HTTPServing
import RoomService
import Testing

@testable import WHIP

@Suite("WHIP and WHEP: sessions")
struct SessionTests {
    private let endpoints = TestEndpoints()

    private func publish() async throws -> (location: String, tag: String) {
        let response = try await endpoints.post("/whip/studio", TestEndpoints.offer)
        return (try #require(response.headers["Location"]), try #require(response.headers["ETag"]))
    }

    private func patch(
        _ location: String, _ body: String, tag: String?, type: String = "application/trickle-ice-sdpfrag",
        token: String? = nil
    ) async throws -> HTTPResponse {
        var headers = HTTPHeaders()
        headers["If-Match"] = tag
        return await endpoints.router.handle(
            try request(.patch, location, token: token, type: type, headers: headers, body: body))
    }

    private func fragment(_ ufrag: String = "clnt", _ password: String = "0123456789abcdefghijklmn") -> String {
        """
        a=ice-ufrag:\(ufrag)\r
        a=ice-pwd:\(password)\r
        m=audio 9 UDP/TLS/RTP/SAVPF 0\r
        a=mid:0\r
        a=candidate:1 1 udp 2122260223 192.0.2.7 50123 typ host\r
        a=end-of-candidates\r

        """
    }

    @Test("Candidates are accepted with 204, repeated ones too")
    func trickle() async throws {
        let (location, tag) = try await publish()
        for _ in 0..<2 { #expect(try await patch(location, fragment(), tag: tag).status == 204) }
    }

    @Test("New credentials restart ICE: 200 with the server's, and a new ETag; the old ETag is 412 from then on (B21)")
    func restart() async throws {
        let (location, tag) = try await publish()
        let restarted = try await patch(location, fragment("new1", "abcdefghijklmnopqrstuvwx"), tag: "\"*\"")
        #expect(restarted.status == 200, "\(restarted.text)")
        #expect(restarted.headers["Content-Type"] == "application/trickle-ice-sdpfrag")
        #expect(restarted.text.contains("a=ice-ufrag:"))
        let fresh = try #require(restarted.headers["ETag"])
        #expect(fresh != tag)
        #expect(try await patch(location, fragment("new1", "abcdefghijklmnopqrstuvwx"), tag: tag).status == 412)
        #expect(try await patch(location, fragment("new1", "abcdefghijklmnopqrstuvwx"), tag: fresh).status == 204)
        #expect(try await endpoints.rooms.rooms.room(named: "studio").participants.count == 1)
    }

    @Test("A restart whose answer was lost is sent again and gets the same answer, until another restart")
    func repeatedRestart() async throws {
        let (location, _) = try await publish()
        let body = fragment("new1", "abcdefghijklmnopqrstuvwx")
        let first = try await patch(location, body, tag: "*")
        let again = try await patch(location, body, tag: "\"*\"")
        #expect(first.status == 200 && again.status == 200)
        #expect(again.text == first.text && again.headers["ETag"] == first.headers["ETag"])
        // Whoever knows the new tag has the answer.
        #expect(try await patch(location, body, tag: first.headers["ETag"]).status == 204)
        let next = try await patch(location, fragment("new2", "abcdefghijklmnopqrstuvwx"), tag: "*")
        #expect(next.status == 200 && next.headers["ETag"] != first.headers["ETag"])
        let back = try await patch(location, body, tag: "*")
        #expect(back.status == 200 && back.text != first.text)
    }

    @Test("PATCH requires If-Match, the right content type and a fragment")
    func refusals() async throws {
        let (location, tag) = try await publish()
        #expect(try await patch(location, fragment(), tag: nil).status == 428)
        #expect(try await patch(location, fragment(), tag: "\"other\"").status == 412)
        let type = try await patch(location, fragment(), tag: tag, type: "application/sdp")
        #expect(type.status == 415)
        #expect(type.headers["Accept-Patch"] == "application/trickle-ice-sdpfrag")
        #expect(try await patch(location, "", tag: tag).status == 400)
        #expect(try await patch(location, "garbage\u{1}", tag: tag).status == 400)
        #expect(try await patch("/whip/session/SE_none", fragment(), tag: tag).status == 404)
    }

    @Test("DELETE ends the session once; a forged token is refused, no token and an expired one are accepted")
    func ending() async throws {
        let (location, _) = try await publish()
        let forged = await endpoints.router.handle(try request(.delete, location, token: "a.b.c"))
        #expect(forged.status == 401)
        let expired = try TestTokens.token("cam", expiresAt: TestTokens.now - 10_000)
        #expect(await endpoints.router.handle(try request(.delete, location, token: expired)).status == 200)
        #expect(await endpoints.rooms.rooms.statistics().participants == 0)
        #expect(await endpoints.router.handle(try request(.delete, location)).status == 404)
    }

    @Test("Other methods on a session are 405; OPTIONS returns Accept-Patch")
    func methods() async throws {
        let (location, _) = try await publish()
        for method in [HTTPMethod.get, .head, .post, .put] {
            #expect(await endpoints.router.handle(try request(method, location)).status == 405)
        }
        let options = await endpoints.router.handle(try request(.options, location))
        #expect(options.headers["Accept-Patch"] == "application/trickle-ice-sdpfrag")
    }
}

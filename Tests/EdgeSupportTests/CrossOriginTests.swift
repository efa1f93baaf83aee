import EdgeTestSupport
import HTTPServing
import Testing

@testable import EdgeSupport

@Suite("Cross-origin requests")
struct CrossOriginTests {
    private func preflight(_ policy: CrossOrigin, origin: String) async throws -> HTTPResponse {
        var router = Router(finish: policy.apply)
        router.on(.post, "/whip") { _ in HTTPResponse(status: 201) }
        return await router.handle(
            try request(
                .options, "/whip", headers: ["Origin": origin, "Access-Control-Request-Method": "POST"]))
    }

    @Test("A preflight is answered with methods, headers and max-age")
    func preflightAnswer() async throws {
        let response = try await preflight(CrossOrigin(), origin: "https://app.example")
        #expect(response.status == 204)
        #expect(response.headers["Access-Control-Allow-Origin"] == "*")
        #expect(response.headers["Access-Control-Allow-Methods"] == "OPTIONS, POST")
        #expect(response.headers["Access-Control-Allow-Headers"]?.contains("If-Match") == true)
        #expect(response.headers["Access-Control-Allow-Credentials"] == nil)
    }

    @Test("With a list only the listed origins are allowed")
    func list() async throws {
        let policy = CrossOrigin(allowedOrigins: ["https://app.example"])
        let good = try await preflight(policy, origin: "https://app.example")
        #expect(good.headers["Access-Control-Allow-Origin"] == "https://app.example")
        let bad = try await preflight(policy, origin: "https://evil.example")
        #expect(bad.headers["Access-Control-Allow-Origin"] == nil)
        #expect(bad.headers["Vary"] == "Origin")
    }

    @Test("Scripts can read the headers that WHIP needs; a request without Origin gets no CORS headers")
    func exposing() async throws {
        var router = Router(finish: CrossOrigin().apply)
        router.on(.post, "/whip") { _ in HTTPResponse(status: 201) }
        let crossed = await router.handle(try request(.post, "/whip", headers: ["Origin": "https://a.example"]))
        for name in ["Location", "ETag", "Link", "Warning"] {
            #expect(crossed.headers["Access-Control-Expose-Headers"]?.contains(name) == true)
        }
        let plain = await router.handle(try request(.post, "/whip"))
        #expect(plain.headers.fields.isEmpty)
    }

    @Test(
        "A refusal of a head that was not read is for scripts of any origin where all are allowed, and else for those of the origin that it names",
        arguments: [
            (["*"], nil, "*"), (["*"], "https://a.example", "*"), (["https://a.example"], nil, nil),
            (["https://a.example"], "https://a.example", "https://a.example"),
            (["https://a.example"], "https://b.example", nil),
        ] as [([String], String?, String?)])
    func unread(allowed: [String], origin: String?, answered: String?) throws {
        var request = try request(.get, "/")
        request.headers["Origin"] = origin
        request.isUnread = true
        var response = HTTPResponse(status: 431)
        CrossOrigin(allowedOrigins: allowed).apply(request, &response)
        #expect(response.headers["Access-Control-Allow-Origin"] == answered)
    }

    @Test("Scripts of other origins may read a recording part by part")
    func ranges() async throws {
        let preflight = try await preflight(CrossOrigin(), origin: "https://app.example")
        let sent = preflight.headers["Access-Control-Allow-Headers"] ?? ""
        let read = preflight.headers["Access-Control-Expose-Headers"] ?? ""
        for name in ["Range", "If-Range"] { #expect(sent.split(separator: ", ").contains { $0 == name }) }
        for name in ["Accept-Ranges", "Content-Range", "Content-Disposition"] {
            #expect(read.split(separator: ", ").contains { $0 == name })
        }
    }

    @Test("Link values contain quoted credentials")
    func links() {
        let plain = ICEServer(urls: ["stun:a.example", "stun:b.example"])
        #expect(plain.linkValues == ["<stun:a.example>; rel=\"ice-server\"", "<stun:b.example>; rel=\"ice-server\""])
        let turn = ICEServer(urls: ["turn:t.example?transport=udp"], username: "17:a\"b", credential: "c\\d\r\ne")
        #expect(
            turn.linkValues == [
                "<turn:t.example?transport=udp>; rel=\"ice-server\"; username=\"17:a\\\"b\"; credential=\"c\\\\de\"; "
                    + "credential-type=\"password\""
            ])
    }
}

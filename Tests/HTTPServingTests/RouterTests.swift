import Testing

@testable import HTTPServing

@Suite("Router")
struct RouterTests {
    static func router() -> Router {
        var router = Router(finish: { request, response in
            if request.headers["Origin"] != nil { response.headers["Access-Control-Allow-Origin"] = "*" }
        })
        router.on(.post, "/whip/{room}") { HTTPResponse(text: "room \($0.parameters["room"] ?? "")") }
        router.on(.post, "/whip") { _ in HTTPResponse(text: "default") }
        router.on(.delete, "/whip/{room}/{session}") { HTTPResponse(text: "end \($0.parameters["session"] ?? "")") }
        router.on(.get, "/v1/rooms/{room}") { _ in HTTPResponse(text: "any") }
        router.on(.get, "/v1/rooms/special") { _ in HTTPResponse(text: "special") }
        router.on(.options, "/custom") { _ in HTTPResponse(status: 200, text: "mine") }
        router.on(.get, "/") { _ in HTTPResponse(text: "home") }
        return router
    }

    static func ask(_ method: HTTPMethod, _ target: String, headers: HTTPHeaders = [:]) async throws -> HTTPResponse {
        let request = try #require(HTTPRequest(method: method, target: target, headers: headers))
        return await router().handle(request)
    }

    @Test(
        "A request finds its handler",
        arguments: [
            ("POST", "/whip/Broadcast", "room Broadcast"), ("POST", "/whip/a%20b%2Fc", "room a b/c"),
            ("POST", "/whip", "default"), ("DELETE", "/whip/r/s1", "end s1"), ("GET", "/v1/rooms/x", "any"),
            ("GET", "/v1/rooms/special", "special"), ("GET", "/", "home"), ("GET", "/?x=1", "home"),
            ("HEAD", "/", "home"), ("OPTIONS", "/custom", "mine"),
        ])
    func finds(_ method: String, _ target: String, _ body: String) async throws {
        let response = try await Self.ask(HTTPMethod(rawValue: method), target)
        #expect(String(decoding: response.body, as: UTF8.self) == body)
    }

    @Test("An unknown path is 404", arguments: ["/nothing", "/whip/", "/whip/a/b/c", "//", "/whip/r/", "/Whip"])
    func unknown(_ target: String) async throws {
        #expect(try await Self.ask(.post, target).status == 404)
    }

    @Test("A known path with another method is 405, with the allowed methods")
    func wrongMethod() async throws {
        let response = try await Self.ask(.get, "/whip/r")
        #expect(response.status == 405)
        #expect(response.headers["Allow"] == "OPTIONS, POST")
        #expect(try await Self.ask(.post, "/").headers["Allow"] == "GET, HEAD, OPTIONS")
    }

    @Test("OPTIONS is answered, and every response passes the hook")
    func options() async throws {
        let response = try await Self.ask(.options, "/whip/r", headers: ["Origin": "https://a"])
        #expect(response.status == 204)
        #expect(response.headers["allow"] == "OPTIONS, POST")
        #expect(response.headers["Access-Control-Allow-Origin"] == "*")
        #expect(
            try await Self.ask(.get, "/none", headers: ["origin": "x"]).headers["access-control-allow-origin"] == "*")
    }

    @Test(
        "Malformed targets are refused",
        arguments: ["", "a", "/%", "/%1", "/%zz", "/%00", "/%ff", "/?%"])
    func brokenTargets(_ target: String) {
        #expect(HTTPRequest(method: .get, target: target) == nil)
    }

    @Test("The first of two equal query parameters counts")
    func query() throws {
        let request = try #require(HTTPRequest(method: .get, target: "/p?a=1&b&a=2&c=%C3%A9+x&&=4"))
        #expect(request.query == ["a": "1", "b": "", "c": "é x", "": "4"])
        #expect(request.segments == ["p"])
    }

    @Test(
        "A percent-encoded name is one part of a path, whatever it contains",
        arguments: [
            ("Broadcast", "Broadcast"), ("a b", "a%20b"), ("é/~", "%C3%A9%2F~"), ("A-Z_0.9", "A-Z_0.9"),
            ("%+&", "%25%2B%26"),
        ])
    func encoding(_ name: String, _ part: String) {
        #expect(PercentCoding.encode(name) == part)
        #expect(HTTPRequest(method: .get, target: "/\(part)")?.segments == [name])
    }

    @Test("Header names are compared case-insensitively")
    func headers() {
        var headers: HTTPHeaders = ["Link": "<a>", "content-type": "Application/SDP; charset=utf-8"]
        headers.add("link", "<b>")
        #expect(headers.values("LINK") == ["<a>", "<b>"])
        #expect(headers["Content-Type"] != nil)
        #expect(HTTPRequest(method: .post, target: "/", headers: headers)?.contentType == "application/sdp")
        headers["LINK"] = nil
        #expect(headers.fields.count == 1)
    }
}

import HTTPServing
import Logging
import NetworkIO
import Primitives
import Testing

@testable import HTTPClient

@Suite("Calls of other servers", .timeLimit(.minutes(1)))
struct HTTPCallTests {
    private func serving(
        _ handler: @escaping HTTPHandler, _ body: (String) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(host: "127.0.0.1", port: 0),
            logger: Logger("test", output: LogOutput(level: .error) { _ in }))
        try await server.start(webSockets: [], admission: { _ in .admit(isKnown: true) }, handler: handler)
        do {
            try await body("http://127.0.0.1:\(server.port)")
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test(
        "Method, fields and body arrive as they were given, and status and body come back",
        arguments: ["GET", "POST", "PATCH", "DELETE"])
    func request(method: String) async throws {
        try await serving({ request in
            HTTPResponse(
                status: 207,
                text:
                    "\(request.method) \(request.path) \(request.headers["X-A"] ?? "") \(String(decoding: request.body, as: UTF8.self))"
            )
        }) { url in
            var call = HTTPCall(method, url + "/a")
            call.headers = ["X-A: b c"]
            if method != "GET" { call.body = Array("body".utf8) }
            let text = "\(method) /a b c \(method == "GET" ? "" : "body")"
            #expect(await call.performInBackground() == .answered(status: 207, body: Array(text.utf8)))
        }
    }

    @Test(
        "No redirect is followed; where nobody listens the outcome says so; a private address is refused where only public ones are allowed"
    )
    func refusals() async throws {
        try await serving({ _ in HTTPResponse(status: 302, headers: ["Location": "http://127.0.0.1:1/"]) }) { url in
            #expect(await HTTPCall("GET", url).performInBackground() == .answered(status: 302, body: []))
            var call = HTTPCall("GET", url)
            call.isPublicOnly = true
            #expect(await call.performInBackground() == .addressRefused)
        }
        for url in ["http://127.0.0.1:1/", "file:///etc/passwd", "gopher://127.0.0.1/", "http://"] {
            guard case .failed(let words) = await HTTPCall("GET", url).performInBackground() else {
                Issue.record("\(url) was answered")
                continue
            }
            #expect(!words.isEmpty)
        }
    }

    @Test("Pieces are given as they arrive, and false ends the request")
    func pieces() async throws {
        let (pieces, source) = AsyncStream<[UInt8]>.makeStream()
        for text in ["one", "two", "three"] { source.yield(Array(text.utf8)) }
        try await serving({ _ in HTTPResponse(headers: [:], stream: HTTPStream(pieces, keepAlive: [])) }) { url in
            let text = await Task.detached {
                var text = ""
                _ = HTTPCall("GET", url).perform { status, bytes in
                    text += status == 200 ? String(decoding: bytes, as: UTF8.self) : ""
                    return text != "onetwothree"
                }
                return text
            }.value
            #expect(text == "onetwothree")
        }
    }
}

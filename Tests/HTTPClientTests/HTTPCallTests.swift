import Dispatch
import HTTPServing
import Logging
import NetworkIO
import Primitives
import Testing

@testable import HTTPClient

@Suite("Calls of other servers", .timeLimit(.minutes(1)))
struct HTTPCallTests {
    private func serving(
        _ handler: @escaping HTTPHandler, keepAlive: TimeSpan = .seconds(15), _ body: (String) async throws -> Void
    ) async throws {
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configuration.streamKeepAlive = keepAlive
        let server = HTTPServer(
            configuration: configuration, logger: Logger("test", output: LogOutput(level: .error) { _ in }))
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
        guard case .nobodyListens(let words) = await HTTPCall("GET", "http://127.0.0.1:1/").performInBackground() else {
            Issue.record("somebody listens on port 1")
            return
        }
        #expect(!words.isEmpty)
        for url in ["file:///etc/passwd", "gopher://127.0.0.1/", "http://"] {
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

    @Test(
        "Where only the status is wanted no body is kept, and one without an end is not waited for",
        arguments: [false, true])
    func unwantedBody(isEndless: Bool) async throws {
        let source = AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 0x61, count: 1 << 20) })
        try await serving({ _ in
            isEndless
                ? HTTPResponse(headers: [:], stream: HTTPStream(source, keepAlive: []))
                : HTTPResponse(status: 207, text: "thanks")
        }) { url in
            let outcome = await HTTPCall("GET", url).performInBackground(keepsBody: false)
            #expect(outcome == .answered(status: isEndless ? 200 : 207, body: []))
        }
    }

    @Test("A quiet stream goes on as long as signs of life come, however few bytes they have")
    func quietStream() async throws {
        let (pieces, source) = AsyncStream<[UInt8]>.makeStream()
        try await serving(
            { _ in HTTPResponse(headers: [:], stream: HTTPStream(pieces, keepAlive: Array("~".utf8))) },
            keepAlive: .milliseconds(1_000)
        ) { url in
            // Longer than the silence that ends a call, with nothing but a byte now and then. Not on a thread of the tests' own pool, which the server answers on.
            let signs = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    var call = HTTPCall("GET", url)
                    call.timeout = nil
                    call.silence = .seconds(8)
                    var signs = 0
                    _ = call.perform { _, bytes in
                        signs += bytes.count
                        return signs < 10
                    }
                    continuation.resume(returning: signs)
                }
            }
            #expect(signs == 10)
        }
        source.finish()
    }

    @Test("A stream of which nothing comes for the silence that the call permits has failed, and the words say so")
    func silentStream() async throws {
        let (pieces, source) = AsyncStream<[UInt8]>.makeStream()
        try await serving({ _ in HTTPResponse(headers: [:], stream: HTTPStream(pieces, keepAlive: [])) }) { url in
            var call = HTTPCall("GET", url)
            call.timeout = nil
            call.silence = .seconds(1)
            #expect(await call.performInBackground() == .failed("nothing came for 1 s"))
        }
        source.finish()
    }
}

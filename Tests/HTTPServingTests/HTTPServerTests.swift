import Logging
import Primitives
import TestSupport
import Testing

@testable import HTTPServing

@Suite("HTTP server over real sockets", .serialized, .timeLimit(.minutes(1)))
struct HTTPServerTests {
    @Test(
        "Every method reaches the handler with path, query, headers and body",
        arguments: ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    func methods(_ method: String) async throws {
        try await ServerFixture.with(handler: { request in
            var response = HTTPResponse(
                text: "\(request.method) \(request.segments) \(request.query["a"] ?? "-") \(request.text ?? "-")")
            response.headers["X-Echo"] = request.headers["x-question"]
            return response
        }) { server in
            let client = try TCPClient(port: server.port)
            let answer = try #require(
                try await client.request(
                    method, "/a%2Fb/c?a=1+%262", headers: ["X-Question": "why"], body: method == "GET" ? "" : "hello"))
            #expect(answer.status == 200)
            #expect(answer.body == "\(method) [\"a/b\", \"c\"] 1 &2 \(method == "GET" ? "" : "hello")")
            #expect(answer.headers["x-echo"] == "why")
            #expect(answer.headers["content-length"] == String(answer.body.utf8.count))
        }
    }

    @Test("HEAD answers like GET without the body")
    func head() async throws {
        var router = Router()
        router.on(.get, "/x") { _ in HTTPResponse(text: "hello") }
        try await ServerFixture.with(handler: { [router] in await router.handle($0) }) { server in
            let client = try TCPClient(port: server.port)
            let answer = try await client.request("HEAD", "/x")
            #expect(answer?.status == 200)
            #expect(answer?.headers["content-length"] == "5")
            #expect(try await TCPClient(port: server.port).request("GET", "/x")?.body == "hello")
        }
    }

    @Test("A body over the limit is 413, announced or chunked, and never kept")
    func bodyLimit() async throws {
        try await ServerFixture.with(configure: { $0.maximumBodyBytes = 1_000 }) { server in
            let fits = try await TCPClient(port: server.port).request(
                "POST", "/", body: String(repeating: "a", count: 1_000))
            #expect(fits?.body == "POST / 1000")
            let announced = try await TCPClient(port: server.port)
                .request("POST", "/", body: String(repeating: "a", count: 300_000))
            #expect(announced?.status == 413)
            #expect(announced?.headers["connection"] == "close")
            let chunked = try TCPClient(port: server.port)
            try await chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<3 { try await chunked.send("200\r\n\(String(repeating: "a", count: 512))\r\n") }
            try await chunked.send("0\r\n\r\n")
            #expect(try await Answer(from: chunked)?.status == 413)
        }
    }

    @Test("A client that waits for 100 Continue is refused before it sends its body")
    func expectContinue() async throws {
        try await ServerFixture.with(configure: { $0.maximumBodyBytes = 1_000 }) { server in
            let client = try TCPClient(port: server.port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await Answer(from: client)?.status == 413)
            let polite = try TCPClient(port: server.port)
            try await polite.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await polite.head()?.hasPrefix("HTTP/1.1 100") == true)
            try await polite.send("hello")
            #expect(try await Answer(from: polite)?.body == "POST / 5")
        }
    }

    @Test("Long targets are 414, large headers 431, malformed ones 400")
    func headLimits() async throws {
        try await ServerFixture.with(configure: {
            $0.maximumTargetBytes = 100
            $0.maximumHeaderBytes = 1_000
        }) { server in
            let long = "/" + String(repeating: "a", count: 100)
            #expect(try await TCPClient(port: server.port).request("GET", long)?.status == 414)
            let headers = ["X-Large": String(repeating: "a", count: 1_000)]
            #expect(try await TCPClient(port: server.port).request("GET", "/", headers: headers)?.status == 431)
            #expect(try await TCPClient(port: server.port).request("GET", "/%ff")?.status == 400)
            #expect(try await TCPClient(port: server.port).request("GET", "/a?b=%0")?.status == 400)
            let garbage = try TCPClient(port: server.port)
            try await garbage.send("\u{1}\u{2}\u{3}\r\n\r\n")
            #expect(try await Answer(from: garbage)?.status == 400)
            #expect(try await TCPClient(port: server.port).request("GET", "/ok")?.status == 200)
        }
    }

    @Test("A handler that does not answer is given up with 504, and its late answer is discarded")
    func timeout() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock,
            handler: { request in
                if request.path == "/slow" {
                    entered.open()
                    await gate.wait()
                }
                return HTTPResponse(text: "done")
            }
        ) { server in
            let client = try TCPClient(port: server.port)
            try await client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            await entered.wait()
            await clock.advance(by: .milliseconds(29_999), server)
            #expect(server.statistics.requestTimeouts == 0)
            await clock.advance(by: .milliseconds(1), server)
            #expect(try await Answer(from: client)?.status == 504)
            #expect(server.statistics.limitsReached == [.handlerTime: 1])
            gate.open()
            #expect(try await TCPClient(port: server.port).request("GET", "/quick")?.status == 200)
            #expect(server.statistics.requestTimeouts == 1)
        }
    }

    @Test("A request that never completes is cut off, and so is an idle connection")
    func silence() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock) { server in
            let stuck = try TCPClient(port: server.port)
            try await stuck.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
            await server.finishTurn()
            await clock.advance(by: .milliseconds(4_999), server)
            #expect(server.statistics.requestTimeouts == 0)
            await clock.advance(by: .milliseconds(1), server)
            #expect(try await Answer(from: stuck)?.status == 408)
            #expect(try await stuck.isEnded())
            #expect(server.statistics.limitsReached == [.bodyTime: 1])
            let silent = try TCPClient(port: server.port)
            await server.finishTurn()
            await clock.advance(by: .seconds(10), server)
            #expect(try await silent.isEnded())
            #expect(server.statistics.requestTimeouts == 2)
        }
    }

    @Test(
        "A request beyond the limit waits for a slot and gets 503 if none is free in time; the next on its connection is served"
    )
    func overload() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock, configure: { $0.maximumConcurrentRequests = 1 },
            handler: { request in
                entered.open()
                await gate.wait()
                return HTTPResponse(text: request.path)
            }
        ) { server in
            let first = try TCPClient(port: server.port)
            async let answer = first.request("GET", "/first")
            await entered.wait()
            let second = try TCPClient(port: server.port)
            try await second.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n")
            await server.finishTurn()
            await clock.advance(by: .seconds(5), server)
            let refused = try await Answer(from: second)
            #expect(refused?.status == 503)
            #expect(refused?.headers["retry-after"] == "1")
            gate.open()
            let body = try await answer?.body
            #expect(body == "/first")
            #expect(try await Answer(from: second)?.body == "/c")
            #expect(server.statistics.overloads == 1)
        }
    }

    @Test(
        "While the server is overloaded, a CORS preflight is answered 204, and the request behind it 503; both are finished"
    )
    func overloadedPreflight() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock,
            configure: {
                $0.maximumConcurrentRequests = 1
                $0.finish = { $1.headers["X-Origin"] = $0.headers["Origin"] }
            },
            handler: { _ in
                entered.open()
                await gate.wait()
                return HTTPResponse(text: "done")
            }
        ) { server in
            let first = try TCPClient(port: server.port)
            async let answer = first.request("GET", "/first")
            await entered.wait()
            let page = try TCPClient(port: server.port)
            let fields = "HTTP/1.1\r\nHost: a\r\nOrigin: https://app\r\n"
            try await page.send(
                "OPTIONS /a \(fields)Access-Control-Request-Method: DELETE\r\n\r\nDELETE /a \(fields)\r\n")
            await server.finishTurn()
            await clock.advance(by: .seconds(5), server)
            let preflight = try await Answer(from: page, hasBody: false)
            #expect(preflight?.status == 204)
            #expect(preflight?.headers["allow"]?.contains("DELETE") == true)
            #expect(preflight?.headers["x-origin"] == "https://app")
            await clock.advance(by: .seconds(5), server)
            let refused = try await Answer(from: page)
            #expect(refused?.status == 503)
            #expect(refused?.headers["x-origin"] == "https://app")
            #expect(server.statistics.overloads == 1)
            gate.open()
            _ = try await answer
        }
    }

    @Test(
        "C16: a server restricted to loopback serves only loopback clients, by the address that a trusted proxy forwards"
    )
    func loopbackOnly() async throws {
        let showAddress: HTTPHandler = { HTTPResponse(text: "\($0.remoteAddress) \($0.isLoopback) \($0.origin)") }
        let fields = ["X-Forwarded-For": "127.0.0.1, 203.0.113.7", "X-Forwarded-Proto": "https"]
        try await ServerFixture.with(configure: { $0.servesLoopbackOnly = true }, handler: showAddress) { server in
            let answer = try await TCPClient(port: server.port).request("GET", "/", headers: fields)
            #expect(answer?.body == "127.0.0.1 true http://test", "a client's own words do not count")
        }
        try await ServerFixture.with(
            configure: {
                $0.servesLoopbackOnly = true
                $0.trustsForwardedFields = true
            }, handler: showAddress
        ) { server in
            let answer = try await TCPClient(port: server.port).request("GET", "/", headers: fields)
            #expect(answer?.status == 403)
        }
        try await ServerFixture.with(configure: { $0.trustsForwardedFields = true }, handler: showAddress) { server in
            let answer = try await TCPClient(port: server.port).request("GET", "/", headers: fields)
            #expect(answer?.body == "203.0.113.7 false https://test")
        }
    }

    @Test(
        "C16: a proxy may forward the client's port with its address (Azure's gateways, AWS's load balancers on request)",
        arguments: [
            ("203.0.113.7:41000", "203.0.113.7"), ("[2001:db8::7]:443", "2001:db8::7"), ("2001:db8::7", "2001:db8::7"),
            ("unknown", "unknown"),
        ])
    func forwardedPort(field: String, address: String) async throws {
        try await ServerFixture.with(
            configure: { $0.trustsForwardedFields = true }, handler: { HTTPResponse(text: $0.remoteAddress) }
        ) { server in
            let answer = try await TCPClient(port: server.port).request("GET", "/", headers: ["X-Forwarded-For": field])
            #expect(answer?.body == address)
        }
    }

    @Test("A response cannot smuggle lines into the head")
    func headerInjection() async throws {
        try await ServerFixture.with(handler: { _ in
            HTTPResponse(status: 200, headers: ["X-A": "1\r\nX-B: 2", "X-C": "3", "Content-Length": "99"])
        }) { server in
            let answer = try await TCPClient(port: server.port).request("GET", "/")
            #expect(answer?.headers["x-b"] == nil)
            #expect(answer?.headers["x-a"] == nil)
            #expect(answer?.headers["x-c"] == "3")
            #expect(answer?.headers["content-length"] == "0")
        }
    }

    @Test("A response that must not have a body has none (RFC 9110 section 6.4.1)", arguments: [204, 304])
    func bodiless(_ status: Int) async throws {
        try await ServerFixture.with(handler: { request in
            HTTPResponse(status: request.path == "/none" ? status : 200, headers: [:], body: Array("body".utf8))
        }) { server in
            let client = try TCPClient(port: server.port)
            #expect(try await client.request("GET", "/none")?.status == status)
            #expect(try await client.request("GET", "/some")?.body == "body")
        }
    }

    @Test("A path or query with too many parts is refused before it is parsed")
    func manyParts() async throws {
        try await ServerFixture.with { server in
            for (part, count, status) in [("a/", 31, 200), ("a/", 32, 400), ("a=b&", 64, 200), ("a=b&", 65, 400)] {
                let target = (part == "a/" ? "/" : "/?") + String(repeating: part, count: count)
                let answer = try await TCPClient(port: server.port).request("GET", target)
                #expect(answer?.status == status, "\(count)")
            }
        }
    }

    @Test("A client that disconnects while its handler runs does no harm")
    func clientLeaves() async throws {
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(handler: { request in
            if request.path == "/slow" {
                entered.open()
                await gate.wait()
            }
            return HTTPResponse(text: String(repeating: "x", count: 100_000))
        }) { server in
            do {
                let client = try TCPClient(port: server.port)
                try await client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
                await entered.wait()
            }
            gate.open()
            for _ in 0..<3 {
                #expect(try await TCPClient(port: server.port).request("GET", "/")?.body.count == 100_000)
            }
        }
    }

    @Test("start reports the cause of a failure")
    func startErrors() async throws {
        try await ServerFixture.with { running in
            let taken = HTTPServer(
                configuration: HTTPServerConfiguration(host: "127.0.0.1", port: running.port), logger: .quiet)
            await #expect(
                performing: { try await taken.start { _ in HTTPResponse(status: 200) } },
                throws: { error in
                    if case .cannotListen? = error as? HTTPServerError { true } else { false }
                })
            await #expect(throws: HTTPServerError.alreadyStarted) {
                try await running.start { _ in HTTPResponse(status: 200) }
            }
        }
        let nowhere = HTTPServer(configuration: HTTPServerConfiguration(host: "example", port: 0), logger: .quiet)
        await #expect(throws: HTTPServerError.invalidAddress("example")) {
            try await nowhere.start { _ in HTTPResponse(status: 200) }
        }
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configuration.tls = TLSFiles(certificatePath: "/nonexistent", keyPath: "/nonexistent")
        let insecure = HTTPServer(configuration: configuration, logger: .quiet)
        await #expect(
            performing: { try await insecure.start { _ in HTTPResponse(status: 200) } },
            throws: { error in
                if case .invalidCertificate? = error as? HTTPServerError { true } else { false }
            })
    }
}

import Logging
import Primitives
import TestSupport
import Testing

@testable import HTTPServing

/// What clients that want to keep others out run into.
@Suite("Limits of connections and bodies", .serialized, .timeLimit(.minutes(1)))
struct BoundsTests {
    private static let begun = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nv"

    /// A request whose body comes in two pieces.
    private static func post(_ server: HTTPServer) async throws -> Int? {
        let client = try TCPClient(port: server.port)
        try await client.send("POST /good HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
        try await client.send("world")
        return try await Answer(from: client)?.status
    }

    @Test("Unfinished bodies of one address displace each other, oldest first, and no other request")
    func slowBodies() async throws {
        try await ServerFixture.with(configure: { $0.maximumUnknownBodiesPerAddress = 8 }) { server in
            var clients: [TCPClient] = []
            for _ in 0..<100 {
                let client = try TCPClient(port: server.port)
                try await client.send(Self.begun)
                clients.append(client)
                if clients.count % 10 == 0 { #expect(try await Self.post(server) == 200) }
            }
            for client in clients.prefix(80) { #expect(try await Answer(from: client)?.status == 408) }
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            let reached = server.statistics.limitsReached
            #expect((reached[.addressBodies] ?? 0) >= 92 && reached[.requests] == nil)
        }
    }

    @Test("Refusals of the server itself have the CORS fields of their request")
    func finished() async throws {
        try await ServerFixture.with(configure: {
            $0.maximumUnknownBodiesPerAddress = 1
            $0.maximumTargetBytes = 100
            $0.finish = { request, response in
                response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            }
        }) { server in
            func begin(_ length: Int, _ path: String = "/") async throws -> TCPClient {
                let client = try TCPClient(port: server.port)
                try await client.send(
                    "POST \(path) HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\nContent-Length: \(length)\r\n\r\nv")
                await server.finishTurn()
                return client
            }
            let displaced = try await begin(100)
            let tooLarge = try await begin(2 << 20)
            let tooLong = try await begin(1, "/" + String(repeating: "p", count: 110))
            _ = try await begin(100)
            for (client, status) in [(displaced, 408), (tooLarge, 413), (tooLong, 414)] {
                let answer = try #require(try await Answer(from: client))
                #expect(answer.status == status && answer.headers["access-control-allow-origin"] == "https://a")
            }
        }
    }

    @Test("Unfinished bodies of many addresses displace each other")
    func slowBodiesOfMany() async throws {
        try await ServerFixture.with(configure: {
            $0.maximumUnknownBodies = 8
            $0.trustsForwardedFields = true
        }) { server in
            var clients: [TCPClient] = []
            for index in 0..<50 {
                let client = try TCPClient(port: server.port)
                let field = "X-Forwarded-For: 192.0.2.\(index)\r\nContent-Length"
                try await client.send(Self.begun.replacing("Content-Length", with: field))
                clients.append(client)
            }
            #expect(try await Self.post(server) == 200)
            #expect(try await Answer(from: clients[0])?.status == 408)
            #expect((server.statistics.limitsReached[.bodies] ?? 0) >= 42)
        }
    }

    @Test("A body that keeps the minimum rate is awaited; a slower one is not")
    func rate() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock) { server in
            let slow = try TCPClient(port: server.port)
            try await slow.send(Self.begun)
            let steady = try TCPClient(port: server.port)
            try await steady.send("POST /steady HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n")
            await server.finishTurn()
            for _ in 0..<20 {
                try await steady.send(String(repeating: "a", count: 1_000))
                await clock.advance(by: .seconds(1), server)
            }
            #expect(try await Answer(from: slow)?.status == 408)
            #expect(try await slow.isEnded())
            #expect(try await Answer(from: steady)?.status == 200)
            #expect(server.statistics.limitsReached == [.bodyTime: 1])
        }
    }

    @Test(
        "A request refused by its head is answered before its body, and the response survives a body that arrives anyway"
    )
    func admission() async throws {
        var router = Router()
        let admission: HTTPAdmission = { request in
            request.headers["Authorization"] == nil ? .refuse(HTTPResponse(status: 401)) : .admit(isKnown: true)
        }
        router.on(.post, "/room", admission: admission) { HTTPResponse(text: "\($0.body.count)") }
        let fixture = HTTPServer(configuration: HTTPServerConfiguration(host: "127.0.0.1", port: 0), logger: .quiet)
        try await fixture.start(
            admission: { [router] in router.admit($0) }, handler: { [router] in await router.handle($0) })
        func answer(_ head: String, _ body: Int) async throws -> Answer? {
            let client = try TCPClient(port: fixture.port)
            try await client.send("\(head) HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
            if body > 0 { try await client.send(String(repeating: "a", count: body)) }
            return try await Answer(from: client)
        }
        #expect(try await answer("POST /room", 0)?.status == 401)
        #expect(try await answer("POST /room", 500_000)?.status == 401)
        #expect(try await answer("POST /nothing", 0)?.status == 404)
        #expect(try await answer("PUT /room", 0)?.status == 405)
        let good = try await TCPClient(port: fixture.port).request(
            "POST", "/room", headers: ["Authorization": "x"], body: "hello")
        #expect(good?.body == "5")
        await fixture.stop()
    }

    @Test(
        "At the connection limit the longest idle connection is closed, never one with a request"
    )
    func connectionBound() async throws {
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            configure: { $0.maximumConnections = 3 },
            handler: { request in
                if request.path == "/held" {
                    entered.open()
                    await gate.wait()
                }
                return HTTPResponse(text: "done")
            }
        ) { server in
            let busy = try TCPClient(port: server.port)
            try await busy.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            await entered.wait()
            var waiting: [TCPClient] = []
            for _ in 0..<20 { waiting.append(try TCPClient(port: server.port)) }
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            for client in waiting.prefix(18) { #expect(try await client.isEnded()) }
            gate.open()
            #expect(try await Answer(from: busy)?.status == 200)
            #expect((server.statistics.limitsReached[.connections] ?? 0) >= 19)
            #expect(server.statistics.connectionLimit == 3)
        }
    }

    @Test("While every connection is busy new ones are closed; afterwards everyone is served again")
    func allBusy() async throws {
        let gate = Gate()
        try await ServerFixture.with(
            configure: { $0.maximumConnections = 2 },
            handler: { _ in
                await gate.wait()
                return HTTPResponse(text: "done")
            }
        ) { server in
            let busy = try (0..<2).map { _ in try TCPClient(port: server.port) }
            for client in busy { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
            #expect(try await Self.inWork(server, 2))
            #expect(try await TCPClient(port: server.port).isEnded())
            gate.open()
            for client in busy { #expect(try await Answer(from: client)?.status == 200) }
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            #expect(server.statistics.overloads >= 1)
        }
    }

    @Test("One address gets its share of the connections; behind a proxy this limit does not apply")
    func addressBound() async throws {
        try await ServerFixture.with(configure: { $0.maximumConnectionsPerAddress = 4 }) { server in
            let idle = try (0..<10).map { _ in try TCPClient(port: server.port) }
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            for client in idle.prefix(6) { #expect(try await client.isEnded()) }
            #expect((server.statistics.limitsReached[.addressConnections] ?? 0) >= 7)
        }
        try await ServerFixture.with(configure: {
            $0.maximumConnectionsPerAddress = 4
            $0.trustsForwardedFields = true
        }) { server in
            let idle = try (0..<10).map { _ in try TCPClient(port: server.port) }
            #expect(try await ConnectionTests.settles(server, at: 10))
            for client in idle { #expect(try await client.request("GET", "/")?.status == 200) }
        }
    }

    @Test("One address gets its share of the handlers")
    func addressRequests() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock,
            configure: {
                $0.maximumConcurrentRequestsPerAddress = 1
                $0.trustsForwardedFields = true
            },
            handler: { request in
                if request.path == "/held" {
                    entered.open()
                    await gate.wait()
                }
                return HTTPResponse(text: "done")
            }
        ) { server in
            func request(_ path: String, of address: String) async throws -> TCPClient {
                let client = try TCPClient(port: server.port)
                try await client.send("GET \(path) HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(address)\r\n\r\n")
                return client
            }
            let busy = try await request("/held", of: "192.0.2.1")
            await entered.wait()
            let same = try await request("/", of: "192.0.2.1")
            await server.finishTurn()
            #expect(try await Answer(from: request("/", of: "192.0.2.2"))?.status == 200)
            await clock.advance(by: .seconds(5), server)
            #expect(try await Answer(from: same)?.status == 503)
            gate.open()
            #expect(try await Answer(from: busy)?.status == 200)
            #expect(server.statistics.limitsReached == [.addressRequests: 1, .requests: 1])
        }
    }

    @Test(
        "A handler whose client has disconnected keeps its slot until it returns, so that disconnecting frees no capacity"
    )
    func leftHandlers() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock, configure: { $0.maximumConcurrentRequests = 1 },
            handler: { request in
                if request.path == "/held" {
                    entered.open()
                    await gate.wait()
                }
                return HTTPResponse(text: "done")
            }
        ) { server in
            let gone = try TCPClient(port: server.port)
            try await gone.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            await entered.wait()
            gone.reset()
            #expect(try await ConnectionTests.settles(server, at: 0))
            let next = try TCPClient(port: server.port)
            try await next.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            await server.finishTurn()
            #expect(server.statistics.limitsReached == [.requests: 1], "it waits for its turn")
            gate.open()
            #expect(try await Answer(from: next)?.status == 200)
        }
    }

    @Test("A handler that never returns keeps its slot for the request timeout, although its client has disconnected")
    func lostHandlers() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let entered = Gate()
        try await ServerFixture.with(
            clock: clock,
            configure: {
                $0.maximumConcurrentRequests = 1
                $0.queueTimeout = .seconds(100)
            },
            handler: { request in
                if request.path == "/held" {
                    entered.open()
                    await gate.wait()
                }
                return HTTPResponse(text: "done")
            }
        ) { server in
            let gone = try TCPClient(port: server.port)
            try await gone.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            await entered.wait()
            gone.reset()
            #expect(try await ConnectionTests.settles(server, at: 0))
            let next = try TCPClient(port: server.port)
            try await next.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            await server.finishTurn()
            await clock.advance(by: .seconds(30), server)
            #expect(try await Answer(from: next)?.status == 200)
            gate.open()
        }
    }

    @Test("Requests beyond the limits are all answered, one after the other")
    func turns() async throws {
        let gate = Gate()
        try await ServerFixture.with(
            configure: {
                $0.maximumConcurrentRequests = 3
                $0.maximumConcurrentRequestsPerAddress = 2
                $0.trustsForwardedFields = true
            },
            handler: { _ in
                await gate.wait()
                return HTTPResponse(text: "done")
            }
        ) { server in
            let clients = try (0..<30).map { _ in try TCPClient(port: server.port) }
            for (index, client) in clients.enumerated() {
                try await client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.\(index % 3)\r\n\r\n")
            }
            #expect(try await Self.inWork(server, 30))
            gate.open()
            for client in clients { #expect(try await Answer(from: client)?.status == 200) }
            #expect(try await Self.inWork(server, 0))
            #expect(server.statistics.overloads == 0)
        }
    }

    private static func inWork(_ server: HTTPServer, _ count: Int) async throws -> Bool {
        for _ in 0..<2_000 where server.statistics.requestsInWork != count {
            try await Task.sleep(for: .milliseconds(10))
        }
        return server.statistics.requestsInWork == count
    }

    @Test("A response that the client never reads is given up")
    func deafClient() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(
            clock: clock, handler: { _ in HTTPResponse(text: String(repeating: "x", count: 10 << 20)) }
        ) { server in
            let deaf = try TCPClient(port: server.port, receiveBuffer: 4_096)
            try await deaf.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await Self.answered(server, 1))
            await clock.advance(by: .milliseconds(9_999), server)
            #expect(server.statistics.connections == 1)
            await clock.advance(by: .milliseconds(1), server)
            #expect(server.statistics.connections == 0)
            #expect(server.statistics.limitsReached == [.responseTime: 1])
        }
    }

    @Test("At the limit, connections whose clients read nothing are closed first")
    func deafClients() async throws {
        try await ServerFixture.with(
            configure: { $0.maximumConnections = 3 },
            handler: { HTTPResponse(text: $0.path == "/large" ? String(repeating: "x", count: 10 << 20) : "done") }
        ) { server in
            let deaf = try (0..<3).map { _ in try TCPClient(port: server.port, receiveBuffer: 4_096) }
            for client in deaf { try await client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n") }
            #expect(try await Self.answered(server, 3))
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            #expect(server.statistics.overloads == 0)
        }
    }

    /// Waits until so many responses have been begun.
    private static func answered(_ server: HTTPServer, _ count: UInt64) async throws -> Bool {
        for _ in 0..<2_000 where server.statistics.responses[2] != count {
            try await Task.sleep(for: .milliseconds(10))
        }
        await server.finishTurn()
        return server.statistics.responses[2] == count
    }
}

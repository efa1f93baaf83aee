import Primitives
import Testing

@testable import HTTPServing

@Suite("Persistent connections", .serialized, .timeLimit(.minutes(1)))
struct KeepAliveTests {
    private static let get = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("A connection serves one request after the other, with and without bodies")
    func sequential() async throws {
        try await ServerFixture.with { server in
            let client = try TCPClient(port: server.port)
            for index in 0..<20 {
                let answer = try await client.request("POST", "/\(index)", body: String(repeating: "a", count: index))
                #expect(answer?.body == "POST /\(index) \(index)")
                #expect(answer?.headers["connection"] == nil)
            }
            try await client.send("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            try await client.send("3\r\nabc\r\n2;x\r\nde\r\n0\r\nTrailer: x\r\n\r\n")
            #expect(try await Answer(from: client)?.body == "POST /c 5")
            #expect(try await client.request("GET", "/last")?.body == "GET /last 0")
            #expect(server.statistics.connectionsAccepted == 1)
        }
    }

    @Test("Pipelined requests are answered in order, one at a time")
    func pipelined() async throws {
        try await ServerFixture.with { server in
            let client = try TCPClient(port: server.port)
            let requests = (0..<50).map { "POST /\($0) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" }
            try await client.send(requests.joined())
            for index in 0..<50 { #expect(try await Answer(from: client)?.body == "POST /\(index) 3") }
        }
    }

    @Test("A connection is closed at the client's request, after its limit of requests, and when it is idle")
    func ends() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock, configure: { $0.maximumRequestsPerConnection = 2 }) { server in
            let asks = try TCPClient(port: server.port)
            let answer = try await asks.request("GET", "/", headers: ["Connection": "close"])
            #expect(answer?.headers["connection"] == "close")
            #expect(try await asks.isEnded())
            let old = try TCPClient(port: server.port)
            try await old.send("GET / HTTP/1.0\r\n\r\n")
            #expect(try await Answer(from: old)?.status == 200)
            #expect(try await old.isEnded())
            let bounded = try TCPClient(port: server.port)
            #expect(try await bounded.request("GET", "/")?.headers["connection"] == nil)
            #expect(try await bounded.request("GET", "/")?.headers["connection"] == "close")
            #expect(try await bounded.isEnded())
            let idle = try TCPClient(port: server.port)
            #expect(try await idle.request("GET", "/")?.status == 200)
            await clock.advance(by: .milliseconds(74_999), server)
            #expect(server.statistics.connections == 1)
            await clock.advance(by: .milliseconds(1), server)
            #expect(try await idle.isEnded())
            #expect(server.statistics.requestTimeouts == 0, "to be idle is no fault")
        }
    }

    @Test("Behind a trusted proxy, an idle connection stays for longer than proxies keep theirs")
    func idleBehindProxy() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock, configure: { $0.trustsForwardedFields = true }) { server in
            let idle = try TCPClient(port: server.port)
            #expect(try await idle.request("GET", "/")?.status == 200)
            await clock.advance(by: .seconds(610), server)
            #expect(try await idle.request("GET", "/")?.status == 200)
            await clock.advance(by: .seconds(620), server)
            #expect(try await idle.isEnded())
        }
    }

    @Test("Thousands of connections, kept alive and closed by their clients, leave no descriptor behind")
    func descriptors() async throws {
        try await ServerFixture.with { server in
            let before = ConnectionTests.openDescriptors(server)
            for _ in 0..<2_000 {
                let client = try TCPClient(port: server.port)
                #expect(try await client.request("GET", "/")?.headers["connection"] == nil)
            }
            #expect(try await ConnectionTests.settles(server, at: 0))
            #expect(server.statistics.connectionsAccepted == 2_000)
            await server.finishTurn()
            #expect(before > 0 && ConnectionTests.openDescriptors(server) <= before)
        }
    }
}

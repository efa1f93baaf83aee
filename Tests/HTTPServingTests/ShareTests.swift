import Logging
import Synchronization
import TestSupport
import Testing

@testable import HTTPServing

/// What holds its connection for long leaves some for others, and who gets none is in the log.
@Suite("Shares of a listener's connections", .serialized, .timeLimit(.minutes(1)))
struct ShareTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    @Test("Streams hold a quarter of all connections and WebSockets what they may in total, and requests are answered")
    func shares() async throws {
        let (pieces, source) = AsyncStream<[UInt8]>.makeStream()
        try await ServerFixture.with(
            webSockets: [WebSocketTests.echo],
            configure: {
                $0.maximumConnections = 12
                $0.maximumWebSockets = 4
                $0.trustsForwardedFields = true
            },
            handler: { request in
                request.path == "/stream"
                    ? HTTPResponse(headers: [:], stream: HTTPStream(pieces, keepAlive: [])) : HTTPResponse(text: "done")
            }
        ) { server in
            var streams: [TCPClient] = []
            for _ in 0..<3 {
                let client = try TCPClient(port: server.port)
                try await client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await client.head()?.hasPrefix("HTTP/1.1 200") == true)
                streams.append(client)
            }
            #expect(try await TCPClient(port: server.port).request("GET", "/stream")?.status == 503)
            func open(_ address: String) async throws -> WebSocketClient {
                try await WebSocketClient(
                    port: server.port, "/echo/a?token=good", headers: ["X-Forwarded-For": address])
            }
            var sockets: [WebSocketClient] = []
            for number in 1...4 { sockets.append(try await open("192.0.2.\(number)")) }
            #expect(sockets.allSatisfy { $0.answer.status == 101 })
            #expect(try await open("192.0.2.5").answer.status == 503)
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 200)
            #expect(server.statistics.limitsReached == [.streams: 1, .webSockets: 1])
            // A socket that closes makes room for another one.
            try await sockets[0].send(opcode: 8, [])
            #expect(try await sockets[0].tcp.isEnded())
            #expect(try await open("192.0.2.5").answer.status == 101)
            source.finish()
            for client in streams { #expect(try await client.isEnded()) }
        }
    }

    @Test("A connection that is refused because none is idle is logged as refused, not as one for which another closed")
    func refusalIsLogged() async throws {
        let lines = Lines()
        let (entered, gate) = (Gate(), Gate())
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configuration.maximumConnections = 1
        let server = HTTPServer(
            configuration: configuration, logger: Logger("http", output: LogOutput(level: .warning) { lines.add($0) }))
        try await server.start(handler: { _ in
            entered.open()
            await gate.wait()
            return HTTPResponse(text: "done")
        })
        do {
            let busy = try TCPClient(port: server.port)
            try await busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await entered.wait()
            #expect(try await TCPClient(port: server.port).isEnded())
            let logged = lines.all
            #expect(logged.count == 1 && logged.allSatisfy { $0.contains("a new one is refused") }, "\(logged)")
            gate.open()
            #expect(try await Answer(from: busy)?.status == 200)
        } catch {
            gate.open()
            await server.stop()
            throw error
        }
        await server.stop()
    }
}

import Dispatch
import Glibc
import Primitives
import TestSupport
import Testing

@testable import HTTPServing

@Suite("Connections", .serialized, .timeLimit(.minutes(1)))
struct ConnectionTests {
    /// Waits until the server counts `count` connections: closing is reported by the kernel, not by the test.
    static func settles(_ server: HTTPServer, at count: Int) async throws -> Bool {
        for _ in 0..<2_000 {
            if server.statistics.connections == count { return true }
            try await Task.sleep(for: .milliseconds(10))
        }
        return false
    }

    /// The server's descriptors: this process's TCP sockets at its port. What other suites have open meanwhile does not count.
    static func openDescriptors(_ server: HTTPServer) -> Int {
        (0..<4_096 as Range<Int32>).count { descriptor in
            var kind: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &length) == 0,
                kind == Int32(SOCK_STREAM.rawValue)
            else { return false }
            var address = sockaddr_in()
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            let isInternet = [AF_INET, AF_INET6].contains(Int32(address.sin_family))
            return status == 0 && isInternet && UInt16(bigEndian: address.sin_port) == server.port
        }
    }

    @Test("L4: clients that disconnect in any state leave no connection and no descriptor behind")
    func vanishing() async throws {
        try await ServerFixture.with(webSockets: [WebSocketTests.echo]) { server in
            let before = Self.openDescriptors(server)
            for _ in 0..<200 {
                _ = try TCPClient(port: server.port)
                let served = try TCPClient(port: server.port)
                #expect(try await served.request("GET", "/")?.status == 200)
                let half = try TCPClient(port: server.port)
                try await half.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
                let broken = try TCPClient(port: server.port)
                try await broken.send("rubbish\r\n\r\n")
                let socket = try await WebSocketClient(port: server.port, "/echo/a?token=good")
                try await socket.send("a")
                #expect(try await socket.receive()?.text == "a")
            }
            #expect(try await Self.settles(server, at: 0))
            #expect(server.statistics.webSockets == 0)
            #expect(server.statistics.requestsInWork == 0)
            await server.finishTurn()
            #expect(before > 0 && Self.openDescriptors(server) <= before)
        }
    }

    @Test("A head that arrives byte by byte gets the same timeout as any other")
    func slowHead() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock) { server in
            let slow = try TCPClient(port: server.port)
            await server.finishTurn()
            for byte in "GET / HTT" {
                try await slow.send(String(byte))
                await clock.advance(by: .seconds(1), server)
            }
            #expect(server.statistics.requestTimeouts == 0)
            await clock.advance(by: .seconds(1), server)
            #expect(try await Answer(from: slow)?.status == 408)
            #expect(try await slow.isEnded())
            await clock.advance(by: .seconds(5), server)
            #expect(server.statistics.connections == 0)
            #expect(server.statistics.requestTimeouts == 1)
            #expect(server.statistics.limitsReached == [.headTime: 1])
            let quick = try TCPClient(port: server.port)
            #expect(try await quick.request("GET", "/")?.status == 200)
        }
    }

    @Test(
        "Refusals of heads that are too long, malformed or unfinished have CORS fields for the origin that they name",
        arguments: [
            ("GET / HTTP/1.1\r\nOrigin: https://a\r\nX: \(String(repeating: "x", count: 300))", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\nOrigin:https://a \r\nX : y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\norigin: https://a\r\nX: y\nHost: a", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\nOrigin: https://a\r\n\r\n", 505),
            ("GET /%zz HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\n\r\n", 400),
            ("POST /%zz HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\nContent-Length: 2000000\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\nOrigin: https://a\r\nHost: ", 408),
        ])
    func unreadHeads(head: String, status: Int) async throws {
        let clock = ManualClock()
        try await ServerFixture.with(
            clock: clock,
            configure: {
                $0.maximumHeaderBytes = 200
                $0.finish = { request, response in
                    response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
                }
            }
        ) { server in
            let client = try TCPClient(port: server.port)
            try await client.send(head)
            await server.finishTurn()
            if status == 408 { await clock.advance(by: .seconds(10), server) }
            let answer = try #require(try await Answer(from: client))
            #expect(answer.status == status && answer.headers["access-control-allow-origin"] == "https://a")
        }
    }

    /// More than one wait of the loop reports, as there are after the process was stopped, or a turn took long.
    @Test("Requests that are in their sockets when their timeout expires count as in time")
    func lateLoop() async throws {
        let clock = ManualClock()
        let began = Gate()
        let held = DispatchSemaphore(value: 0)
        try await ServerFixture.with(
            clock: clock,
            admission: { _ in
                began.open()
                held.wait()
                return .admit(isKnown: true)
            }
        ) { server in
            let clients = try (0..<300).map { _ in try TCPClient(port: server.port) }
            for _ in 0..<3 { await server.finishTurn() }
            #expect(server.statistics.connections == 300)
            let first = try TCPClient(port: server.port)
            try await first.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na")
            await began.wait()
            for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
            async let advanced: Void = clock.advance(by: .seconds(10), server)
            held.signal()
            await advanced
            var served = 0
            for client in clients where try await Answer(from: client)?.status == 200 { served += 1 }
            #expect(served == 300)
            #expect(server.statistics.requestTimeouts == 0)
        }
    }

    @Test("After stop no connection is left")
    func nothingIsLeft() async throws {
        let fixture = try await ServerFixture(webSockets: [WebSocketTests.echo])
        let idle = try TCPClient(port: fixture.port)
        var open: [WebSocketClient] = []
        for index in 0..<50 {
            let socket = try await WebSocketClient(port: fixture.port, "/echo/a?token=good")
            try await socket.send("\(index)")
            #expect(try await socket.receive()?.text == "\(index)")
            if index % 2 == 0 { try await socket.send(opcode: 8, []) } else { open.append(socket) }
        }
        #expect(fixture.server.statistics.connections >= open.count)
        await fixture.stop()
        #expect(try await idle.isEnded())
        let statistics = fixture.server.statistics
        #expect(statistics.connections == 0)
        #expect(statistics.webSockets == 0)
        #expect(statistics.requestsInWork == 0)
    }
}

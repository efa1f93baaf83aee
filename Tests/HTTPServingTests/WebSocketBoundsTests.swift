import Primitives
import TestSupport
import Testing

@testable import HTTPServing

/// What clients and edges do to a WebSocket that should not be there any more, or takes more than its share.
@Suite("Limits and closing of WebSockets", .serialized, .timeLimit(.minutes(1)))
struct WebSocketBoundsTests {
    /// Accepts and reads nothing until `gate` opens.
    private static func deaf(until gate: Gate) -> WebSocketRoute {
        WebSocketRoute("/deaf", protocols: []) { _ in .accept { _ in await gate.wait() } }
    }

    @Test("Too many unhandled messages close the socket with 1008, and later messages are ignored")
    func tooManyMessages() async throws {
        let gate = Gate()
        try await ServerFixture.with(
            webSockets: [Self.deaf(until: gate)], configure: { $0.webSocket.maximumIncomingMessages = 10 }
        ) { server in
            let client = try await WebSocketClient(port: server.port, "/deaf")
            let message: [UInt8] = [0x81, 0x81, 0, 0, 0, 0, 0x61]
            try await client.tcp.send((0..<500).flatMap { _ in message })
            #expect(try await client.receiveClose()?.closeCode == 1008)
            #expect(server.statistics.webSocketLimitsHit == 1)
            #expect(server.statistics.messagesReceived == 11)
            gate.open()
        }
    }

    @Test("Too many unhandled bytes close the socket, even in few messages")
    func tooManyBytes() async throws {
        let gate = Gate()
        try await ServerFixture.with(webSockets: [Self.deaf(until: gate)]) { server in
            let client = try await WebSocketClient(port: server.port, "/deaf")
            let large = [UInt8](repeating: 0x61, count: 256 << 10)
            for _ in 0..<4 { try await client.send(opcode: 2, large) }
            try await client.send(opcode: 9, [])
            #expect(try await client.receive()?.opcode == 10, "a mebibyte may wait")
            try await client.send(opcode: 2, [0])
            #expect(try await client.receiveClose()?.closeCode == 1008)
            gate.open()
        }
    }

    @Test("Handled messages do not count")
    func handledBytes() async throws {
        try await ServerFixture.with(webSockets: [WebSocketTests.echo]) { server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            for index in 0..<20 {
                let large = [UInt8](repeating: UInt8(index), count: 256 << 10)
                try await client.send(opcode: 2, large)
                #expect(try await client.receive()?.payload == large)
            }
        }
    }

    @Test("A socket whose client reads nothing is closed after its timeout, although bytes wait for it")
    func stuckReader() async throws {
        let clock = ManualClock()
        let (queued, leaves, left) = (Gate(), Gate(), Gate())
        let stuck = WebSocketRoute("/stuck", protocols: []) { _ in
            .accept { connection in
                for _ in 0..<90 { connection.send(String(repeating: "x", count: 10_000)) }
                queued.open()
                await leaves.wait()
                connection.close(code: 4_000)
                left.open()
                for await _ in connection.messages {}
            }
        }
        try await ServerFixture.with(webSockets: [stuck], clock: clock) { server in
            let client = try await WebSocketClient(port: server.port, "/stuck", receiveBuffer: 4_096)
            await queued.wait()
            for _ in 0..<3 { await server.finishTurn() }
            leaves.open()
            await left.wait()
            await server.finishTurn()
            await clock.advance(by: .milliseconds(2_999), server)
            #expect(server.statistics.connections == 1)
            await clock.advance(by: .milliseconds(1), server)
            #expect(server.statistics.connections == 0)
            _ = client
        }
    }

    @Test("The snapshot of a room of thousands is one message, and reaches a client that reads")
    func largeSnapshot() async throws {
        let snapshot = WebSocketRoute("/snapshot", protocols: []) { _ in
            .accept { connection in
                connection.send("hello")
                connection.send(String(repeating: "x", count: 3 << 20))
                connection.send("event")
                for await _ in connection.messages {}
            }
        }
        try await ServerFixture.with(webSockets: [snapshot]) { server in
            let client = try await WebSocketClient(port: server.port, "/snapshot")
            #expect(try await client.receive()?.text == "hello")
            #expect(try await client.receive()?.payload.count == 3 << 20)
            #expect(try await client.receive()?.text == "event")
        }
    }

    @Test("A client that answers pings stays connected; one that misses two is disconnected")
    func deadPeer() async throws {
        let clock = ManualClock()
        try await ServerFixture.with(webSockets: [WebSocketTests.echo], clock: clock) { server in
            let dead = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            let alive = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            var pings = 0
            // Each is pinged once in 20 s, at its own tenth of them.
            for _ in 0..<40 {
                await clock.advance(by: .seconds(2), server)
                try await alive.send("a")
                while let frame = try await alive.receive(), frame.opcode != 1 { pings += frame.opcode == 9 ? 1 : 0 }
            }
            #expect(pings == 4)
            #expect(try await dead.receive()?.opcode == 9)
            #expect(try await dead.receive()?.opcode == 9)
            #expect(try await dead.tcp.isEnded())
            #expect(server.statistics.webSockets == 1)
        }
    }

    @Test("A WebSocket upgrade during shutdown is refused, and a route that had accepted it learns that")
    func upgradeWhileStopping() async throws {
        let (asked, decides, abandoned) = (Gate(), Gate(), Gate())
        let slow = WebSocketRoute("/slow", protocols: []) { _ in
            asked.open()
            await decides.wait()
            return .accept(
                abandoned: { abandoned.open() }, session: { connection in for await _ in connection.messages {} })
        }
        let fixture = try await ServerFixture(webSockets: [slow])
        let port = fixture.port
        async let client = WebSocketClient(port: port, "/slow")
        await asked.wait()
        async let stopped: Void = fixture.stop()
        // Nobody listens once the server has begun to stop.
        while TCPClient.isListening(port) { try await giveWay() }
        decides.open()
        let answer = try await client.answer
        #expect(answer.status == 503)
        #expect(answer.headers["connection"] == "close")
        await stopped
        await abandoned.wait()
        #expect(fixture.server.statistics.webSockets == 0)
    }

    @Test("A route learns that a client which it accepted has disconnected meanwhile")
    func disconnectsWhileDeciding() async throws {
        let (asked, decides, abandoned) = (Gate(), Gate(), Gate())
        let slow = WebSocketRoute("/slow", protocols: []) { _ in
            asked.open()
            await decides.wait()
            return .accept(
                abandoned: { abandoned.open() }, session: { connection in for await _ in connection.messages {} })
        }
        try await ServerFixture.with(webSockets: [slow]) { server in
            let client = try TCPClient(port: server.port)
            let request = [
                "GET /slow HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "", "",
            ]
            try await client.send(Array(request.joined(separator: "\r\n").utf8))
            await asked.wait()
            client.reset()
            while server.statistics.connections > 0 { try await giveWay() }
            decides.open()
            await abandoned.wait()
            #expect(server.statistics.webSockets == 0)
        }
    }

    @Test("A plain request learns what a WebSocket would be refused for, and counts as none")
    func plainRequest() async throws {
        try await ServerFixture.with(
            webSockets: [WebSocketTests.echo], configure: { $0.maximumWebSockets = 1 },
            handler: { HTTPResponse(text: $0.webSocketRefusal?.code ?? "none") }
        ) { server in
            #expect(try await TCPClient(port: server.port).request("GET", "/echo/a")?.body == "none")
            let only = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            #expect(only.answer.status == 101)
            #expect(try await TCPClient(port: server.port).request("GET", "/echo/a")?.body == "overloaded")
            #expect(server.statistics.limitsReached.isEmpty)
            #expect(try await WebSocketClient(port: server.port, "/echo/a?token=good").answer.status == 503)
            #expect(server.statistics.limitsReached == [.webSockets: 1])
            try await only.send(opcode: 8, [])
        }
    }

    @Test("One address gets its share of the WebSockets")
    func addressBound() async throws {
        try await ServerFixture.with(
            webSockets: [WebSocketTests.echo],
            configure: {
                $0.maximumWebSocketsPerAddress = 2
                $0.trustsForwardedFields = true
            }
        ) { server in
            func open(_ address: String) async throws -> WebSocketClient {
                try await WebSocketClient(
                    port: server.port, "/echo/a?token=good", headers: ["X-Forwarded-For": address])
            }
            let first = try await open("192.0.2.1")
            let second = try await open("192.0.2.1")
            #expect(first.answer.status == 101 && second.answer.status == 101)
            #expect(try await open("192.0.2.1").answer.status == 503)
            #expect(try await open("192.0.2.2").answer.status == 101)
            try await first.send(opcode: 8, [])
            #expect(try await first.tcp.isEnded())
            #expect(try await open("192.0.2.1").answer.status == 101)
            #expect(server.statistics.limitsReached == [.addressWebSockets: 1])
        }
    }
}

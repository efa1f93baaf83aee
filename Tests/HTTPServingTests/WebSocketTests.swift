import Primitives
import Synchronization
import TestSupport
import Testing

@testable import HTTPServing

@Suite("WebSockets over real sockets", .serialized, .timeLimit(.minutes(1)))
struct WebSocketTests {
    /// Sends back what comes.
    static let echo = WebSocketRoute("/echo/{room}", protocols: ["martlet.v1", "martlet.v0"]) { request in
        if request.query["token"] != "good" {
            return .refuse(HTTPResponse(status: 401, text: "no \(request.parameters["room"] ?? "")"))
        }
        return .accept { connection in
            for await message in connection.messages {
                switch message {
                case .text("bye"): return
                case .text(let text): connection.send(text)
                case .binary(let bytes): connection.send(bytes)
                }
            }
        }
    }

    @Test("Text and binary messages return in order, large and small, and fragmented")
    func echoes() async throws {
        try await ServerFixture.with(webSockets: [Self.echo]) { server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            #expect(client.answer.status == 101)
            for index in 0..<100 { try await client.send("message \(index)") }
            for index in 0..<100 { #expect(try await client.receive()?.text == "message \(index)") }
            let large = [UInt8](repeating: 7, count: 200_000)
            try await client.send(opcode: 2, large)
            #expect(try await client.receive() == WebSocketClient.Frame(opcode: 2, payload: large))
            try await client.send(opcode: 1, Array("he".utf8), isFinal: false)
            try await client.send(opcode: 0, Array("llo".utf8))
            #expect(try await client.receive()?.text == "hello")
            try await client.send(opcode: 9, Array("beat".utf8))
            #expect(try await client.receive() == WebSocketClient.Frame(opcode: 10, payload: Array("beat".utf8)))
            #expect(server.statistics.webSockets == 1)
            #expect(server.statistics.messagesReceived == 102)
        }
    }

    @Test("A refused client gets an HTTP response and no upgrade")
    func refusal() async throws {
        try await ServerFixture.with(webSockets: [Self.echo]) { server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=bad")
            #expect(client.answer.status == 401)
            #expect(client.answer.body == "no a")
            let plain = try await TCPClient(port: server.port).request("GET", "/echo/a?token=good")
            #expect(plain?.status == 200, "the handler's, which may say why an upgrade is refused")
            #expect(try await WebSocketClient(port: server.port, "/other").answer.status == 200, "an ordinary request")
        }
    }

    @Test("The server's preferred subprotocol among the client's is chosen; none in common is 400")
    func subprotocols() async throws {
        try await ServerFixture.with(webSockets: [Self.echo]) { server in
            let target = "/echo/a?token=good"
            let both = try await WebSocketClient(port: server.port, target, protocols: "martlet.v0, martlet.v1")
            #expect(both.answer.headers["sec-websocket-protocol"] == "martlet.v1")
            let other = try await WebSocketClient(port: server.port, target, protocols: "chat")
            #expect(other.answer.status == 400)
            let old = try await WebSocketClient(port: server.port, target, headers: ["Sec-WebSocket-Version": "8"])
            #expect(old.answer.status == 400)
            let ancient = try TCPClient(port: server.port)
            try await ancient.send(
                "GET \(target) HTTP/1.0\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            #expect(try await Answer(from: ancient)?.status == 200, "HTTP/1.0 has no upgrades (RFC 9110 section 7.8)")
        }
    }

    @Test("Either side can close")
    func closing() async throws {
        try await ServerFixture.with(webSockets: [Self.echo]) { server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await client.send("last")
            try await client.send("bye")
            #expect(try await client.receive()?.text == "last")
            #expect(try await client.receive()?.closeCode == 1000)
            let other = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await other.send(opcode: 8, [0x03, 0xe9])
            #expect(try await other.receive()?.closeCode == 1001)
            #expect(try await other.tcp.isEnded())
        }
    }

    @Test("D2: a message over the limit closes with 1009, whole or in fragments")
    func oversize() async throws {
        try await ServerFixture.with(webSockets: [Self.echo], configure: { $0.webSocket.maximumMessageBytes = 1_000 }) {
            server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await client.send(String(repeating: "a", count: 1_000))
            #expect(try await client.receive()?.payload.count == 1_000)
            try await client.send(String(repeating: "a", count: 1_001))
            let frame = try await client.receive()
            #expect(frame?.closeCode == 1009, "\(String(describing: frame))")
            #expect(server.statistics.webSocketLimitsHit == 1)
            let sly = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            for index in 0..<50 {
                let isSent = try await sly.send(
                    opcode: index == 0 ? 1 : 0, [UInt8](repeating: 97, count: 900), isFinal: false)
                if !isSent { break }
            }
            #expect(try await sly.receiveClose()?.closeCode == 1009)
            let broken = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await broken.send(opcode: 3, [])
            #expect(try await broken.receiveClose()?.closeCode == 1002)
        }
    }

    @Test("A slow reader is closed with 1013 and counted, and its queue stays bounded")
    func slowReader() async throws {
        let finished = Gate()
        let accepted = Mutex(0)
        let flood = WebSocketRoute("/flood", protocols: []) { _ in
            .accept { connection in
                let text = String(repeating: "x", count: 10_000)
                while connection.send(text) { accepted.withLock { $0 += 1 } }
                #expect(!connection.isOpen)
                finished.open()
                for await _ in connection.messages {}
            }
        }
        let clock = ManualClock()
        try await ServerFixture.with(
            webSockets: [flood, Self.echo], clock: clock,
            configure: {
                $0.webSocket.maximumQueuedBytes = 200_000
                $0.webSocket.closeTimeout = .milliseconds(300)
            }
        ) { server in
            let client = try await WebSocketClient(port: server.port, "/flood", receiveBuffer: 4_096)
            await finished.wait()
            #expect(accepted.withLock { $0 } < 1_000, "10 MB would mean that nobody counts")
            let other = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await other.send("still here")
            #expect(try await other.receive()?.text == "still here")
            #expect(server.statistics.slowReaders == 1)
            await clock.advance(by: .milliseconds(300), server)
            #expect(try await client.tcp.isEnded())
        }
    }

    @Test("A source that waits for its reader is held up by a slow one, and notified when the socket is closed")
    func drained() async throws {
        let taken = Mutex(0)
        let ended = Gate()
        let source = WebSocketRoute("/source", protocols: []) { _ in
            .accept { connection in
                let text = String(repeating: "x", count: 1 << 20)
                while await connection.sendAndDrain(text) { taken.withLock { $0 += 1 } }
                #expect(!connection.isOpen)
                ended.open()
            }
        }
        try await ServerFixture.with(webSockets: [source]) { server in
            do {
                let client = try await WebSocketClient(port: server.port, "/source", receiveBuffer: 4_096)
                for _ in 0..<3 { #expect(try await client.receive()?.payload.count == 1 << 20) }
                var before = -1
                while before != taken.withLock({ $0 }) {
                    before = taken.withLock { $0 }
                    for _ in 0..<20 { await server.finishTurn() }
                }
                #expect((3..<32).contains(before), "\(before) MiB were taken from the source")
                #expect(server.statistics.slowReaders == 0)
            }
            await ended.wait()
        }
    }

    @Test("Endless pings or fragments close the socket with 1008; some of either are accepted")
    func controlFlood() async throws {
        try await ServerFixture.with(webSockets: [Self.echo]) { server in
            let client = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            for _ in 0..<50 { try await client.send(opcode: 9, []) }
            try await client.send("a")
            while let frame = try await client.receive(), frame.opcode != 1 { #expect(frame.opcode == 10) }
            let ping: [UInt8] = [0x89, 0x80, 0, 0, 0, 0]
            try await client.tcp.send((0..<20_000).flatMap { _ in ping })
            #expect(try await client.receiveClose()?.closeCode == 1008)
            #expect(server.statistics.limitsReached == [.controlFrames: 1])
            #expect(server.statistics.webSocketLimitsHit == 1)
            let torn = try await WebSocketClient(port: server.port, "/echo/a?token=good")
            try await torn.send(opcode: 1, [], isFinal: false)
            for _ in 0..<200 { try await torn.send(opcode: 0, [0x61], isFinal: false) }
            try await torn.send(opcode: 0, [])
            #expect(try await torn.receive()?.payload.count == 200)
            try await torn.send(opcode: 1, [], isFinal: false)
            for _ in 0..<300 { try await torn.send(opcode: 0, [], isFinal: false) }
            #expect(try await torn.receiveClose()?.closeCode == 1008)
        }
    }

    @Test("A connection that is lost ends the stream of messages with 1006")
    func broken() async throws {
        let ended = Gate()
        let reason = Mutex<WebSocketClose?>(nil)
        let watch = WebSocketRoute("/watch", protocols: []) { _ in
            .accept { connection in
                for await _ in connection.messages {}
                reason.withLock { $0 = connection.closed }
                #expect(!connection.send("anyone?"))
                ended.open()
            }
        }
        try await ServerFixture.with(webSockets: [watch]) { server in
            do { _ = try await WebSocketClient(port: server.port, "/watch") }
            await ended.wait()
            #expect(reason.withLock { $0?.code } == 1006)
        }
    }

    @Test("stop closes sockets with 1001")
    func stopping() async throws {
        let fixture = try await ServerFixture(webSockets: [Self.echo])
        let client = try await WebSocketClient(port: fixture.port, "/echo/a?token=good")
        async let close = client.receiveClose()
        async let stopped: Void = fixture.stop()
        let code = try await close?.closeCode
        #expect(code == 1001)
        try await client.send(opcode: 8, [0x03, 0xe9])
        await stopped
        #expect(fixture.server.port == 0)
    }
}

import Primitives
import Synchronization
import TestSupport
import Testing

@testable import HTTPServing

@Suite("Responses that go on", .serialized, .timeLimit(.minutes(1)))
struct StreamTests {
    /// A source whose end at the server's side can be waited for.
    private final class Source: Sendable {
        let pieces: AsyncStream<[UInt8]>
        let continuation: AsyncStream<[UInt8]>.Continuation
        let isGone = Gate()

        init() {
            (pieces, continuation) = AsyncStream.makeStream()
            continuation.onTermination = { [isGone] _ in isGone.open() }
        }

        func send(_ text: String) { continuation.yield(Array(text.utf8)) }

        var response: HTTPResponse {
            HTTPResponse(
                headers: ["Content-Type": "text/plain"], stream: HTTPStream(pieces, keepAlive: Array("~".utf8)))
        }
    }

    private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("Each piece reaches the client when it comes, without a length, and the connection ends behind the last")
    func pieces() async throws {
        let source = Source()
        try await ServerFixture.with(handler: { _ in source.response }) { server in
            let client = try TCPClient(port: server.port)
            try await client.send(Self.get)
            let head = try #require(try await client.head())
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n") && head.contains("Connection: close\r\n"))
            #expect(!head.contains("Content-Length") && !head.contains("Transfer-Encoding"))
            for text in ["one", "two"] {
                source.send(text)
                #expect(try await client.bytes(3) == Array(text.utf8))
            }
            #expect(server.statistics.streams == 1 && server.statistics.requestsInWork == 1)
            source.send("end")
            source.continuation.finish()
            #expect(try await client.bytes(3) == Array("end".utf8))
            #expect(try await client.isEnded())
            #expect(server.statistics.streams == 0 && server.statistics.requestsInWork == 0)
        }
    }

    @Test("A response that goes on is counted once, when it begins, by its status; so are HEAD and a refusal beside it")
    func counted() async throws {
        let source = Source()
        try await ServerFixture.with(
            configure: { $0.maximumStreams = 1 },
            handler: { request in
                var response = source.response
                if request.path == "/part" { response.status = 206 }
                if request.path == "/none" { response.status = 404 }
                return response
            }
        ) { server in
            let client = try TCPClient(port: server.port)
            try await client.send("GET /part HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await client.head()
            #expect(server.statistics.responses == [0, 0, 1, 0, 0, 0])
            #expect(try await TCPClient(port: server.port).request("GET", "/")?.status == 503)
            #expect(server.statistics.responses == [0, 0, 1, 0, 0, 1])
            source.send("end")
            source.continuation.finish()
            #expect(try await client.bytes(3) == Array("end".utf8))
            #expect(try await client.isEnded())
            let other = try TCPClient(port: server.port)
            try await other.send("HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await other.head()
            #expect(server.statistics.responses == [0, 0, 1, 0, 1, 1])
        }
    }

    @Test("The known length of a body is announced to the client, also by HEAD, and with the status of the response")
    func length() async throws {
        let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
        try await ServerFixture.with(handler: { _ in
            HTTPResponse(status: 206, headers: [:], stream: HTTPStream(pieces, length: 6, keepAlive: []))
        }) { server in
            for method in ["HEAD", "GET"] {
                let client = try TCPClient(port: server.port)
                try await client.send("\(method) / HTTP/1.1\r\nHost: a\r\n\r\n")
                let head = try #require(try await client.head())
                #expect(head.hasPrefix("HTTP/1.1 206 ") && head.contains("Content-Length: 6\r\n"))
                guard method == "GET" else { continue }
                for text in ["one", "two"] { continuation.yield(Array(text.utf8)) }
                continuation.finish()
                #expect(try await client.bytes(6) == Array("onetwo".utf8))
                #expect(try await client.isEnded())
            }
        }
    }

    @Test("Downloads hold half of what may go on at most, and whoever follows events is served beside them")
    func downloads() async throws {
        let source = Source()
        let (pieces, file) = AsyncStream<[UInt8]>.makeStream()
        try await ServerFixture.with(
            configure: { $0.maximumStreams = 2 },
            handler: { request in
                request.path == "/file"
                    ? HTTPResponse(headers: [:], stream: HTTPStream(pieces, length: 3, keepAlive: [])) : source.response
            }
        ) { server in
            let first = try TCPClient(port: server.port)
            try await first.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await first.head()
            #expect(try await TCPClient(port: server.port).request("GET", "/file")?.status == 503)
            #expect(server.statistics.limitsReached == [.streams: 1])
            let follower = try TCPClient(port: server.port)
            try await follower.send(Self.get)
            #expect(try await follower.head()?.hasPrefix("HTTP/1.1 200") == true)
            file.yield(Array("end".utf8))
            file.finish()
            #expect(try await first.bytes(3) == Array("end".utf8))
            #expect(try await first.isEnded())
            // One that is over makes room for another one.
            let next = try TCPClient(port: server.port)
            try await next.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await next.head()?.hasPrefix("HTTP/1.1 200") == true)
        }
    }

    @Test("Where nothing comes, a sign of life goes out at each interval; a client that leaves ends the source")
    func keepAlive() async throws {
        let source = Source()
        let clock = ManualClock()
        try await ServerFixture.with(clock: clock, handler: { _ in source.response }) { server in
            let client = try TCPClient(port: server.port)
            try await client.send(Self.get)
            _ = try await client.head()
            await clock.advance(by: .milliseconds(14_999), server)
            source.send("a")
            #expect(try await client.bytes(1) == Array("a".utf8))
            await clock.advance(by: .milliseconds(14_999), server)
            for _ in 0..<3 {
                await clock.advance(by: .seconds(15), server)
                #expect(try await client.bytes(1) == Array("~".utf8))
            }
            client.reset()
            await clock.advance(by: .seconds(15), server)
            await clock.advance(by: .seconds(15), server)
            await source.isGone.wait()
            #expect(server.statistics.streams == 0)
        }
    }

    @Test(
        "A client that reads nothing holds the source up, takes no memory for it, and is cut off at the second sign of life"
    )
    func slowReader() async throws {
        let taken = Atomic<Int>(0)
        let clock = ManualClock()
        let source = AsyncStream<[UInt8]>(unfolding: {
            taken.add(1, ordering: .relaxed)
            return [UInt8](repeating: 0x61, count: 1 << 20)
        })
        try await ServerFixture.with(
            clock: clock, handler: { _ in HTTPResponse(headers: [:], stream: HTTPStream(source, keepAlive: [0x7e])) }
        ) { server in
            let client = try TCPClient(port: server.port, receiveBuffer: 4_096)
            try await client.send(Self.get)
            _ = try await client.head()
            // The socket's buffers take some; from then on nothing more is asked for.
            var before = -1
            while before != taken.load(ordering: .relaxed) {
                before = taken.load(ordering: .relaxed)
                for _ in 0..<20 { await server.finishTurn() }
            }
            #expect(before < 32, "\(before) MiB were taken from the source")
            await clock.advance(by: .seconds(15), server)
            await clock.advance(by: .seconds(15), server)
            #expect(server.statistics.streams == 0 && server.statistics.limitsReached[.responseTime] == 1)
        }
    }

    @Test("A stream beyond the limit is answered 503; HEAD gets the head alone; a server that stops ends the streams")
    func bounds() async throws {
        let source = Source()
        let fixture = try await ServerFixture(
            configure: { $0.maximumStreams = 1 }, handler: { _ in source.response })
        let first = try TCPClient(port: fixture.port)
        try await first.send(Self.get)
        _ = try await first.head()
        let second = try TCPClient(port: fixture.port)
        #expect(try await second.request("GET", "/")?.status == 503)
        #expect(fixture.server.statistics.limitsReached[.streams] == 1)
        let third = try TCPClient(port: fixture.port)
        try await third.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try await third.head()?.hasPrefix("HTTP/1.1 200") == true)
        await fixture.stop()
        #expect(try await first.isEnded())
        await source.isGone.wait()
    }

    @Test("A stream whose client proves disconnected while its head is sent leaves its source at once")
    func disconnectedBeforeItsTask() async throws {
        let source = Source()
        let stream = OpenStream(HTTPStream(source.pieces, keepAlive: []))
        stream.end()
        stream.begin(Task { [pieces = source.pieces] in for await _ in pieces {} })
        await source.isGone.wait()
    }
}

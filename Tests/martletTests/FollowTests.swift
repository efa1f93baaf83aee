import AccessTokens
import Dispatch
import EdgeSupport
import HTTPServing
import Logging
import Primitives
import Synchronization
import TestSupport
import Testing

@testable import martlet

/// `martlet events --follow` against a server that ends its event streams.
@Suite("Following events", .timeLimit(.minutes(1)))
struct FollowTests {
    private final class Asked: Sendable {
        private let requests = Mutex<[HTTPRequest]>([])
        var all: [HTTPRequest] { requests.withLock { $0 } }

        /// How many there are with this one.
        func add(_ request: HTTPRequest) -> Int {
            requests.withLock { requests in
                requests.append(request)
                return requests.count
            }
        }
    }

    private struct Followed: Sendable {
        var lines: [String] = []
        var remarks: [String] = []
        var error: CommandError?
    }

    private func serving(_ handler: @escaping HTTPHandler, _ body: (HTTPServer) async throws -> Void) async throws {
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(host: "127.0.0.1", port: 0),
            logger: Logger("test", output: LogOutput(level: .error) { _ in }))
        try await server.start(handler: handler)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// A stream that ends behind these pieces.
    private static func stream(_ texts: String...) -> HTTPResponse {
        let (pieces, source) = AsyncStream<[UInt8]>.makeStream()
        for text in texts { source.yield(Array(text.utf8)) }
        source.finish()
        return HTTPResponse(
            headers: ["Content-Type": "text/event-stream"], stream: HTTPStream(pieces, keepAlive: Array(":\n\n".utf8)))
    }

    /// Follows the events of a server on a thread that may wait, until there is nothing to follow any more.
    private static func follow(
        _ server: HTTPServer, _ words: [String], pause: TimeSpan, _ event: @escaping @Sendable () -> Void = {}
    ) async -> Followed {
        let words = ["events", "--follow", "--server", "http://127.0.0.1:\(server.port)"] + words
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Self.followed(words, pause, event)) }
        }
    }

    private static func followed(
        _ words: [String], _ pause: TimeSpan, _ event: @escaping @Sendable () -> Void
    ) -> Followed {
        var followed = Followed()
        do throws(CommandError) {
            guard case .ask(let command) = try Command(arguments: words) else { return followed }
            try command.client.follow("/events", pause: pause, remark: { followed.remarks.append($0) }) { line in
                followed.lines.append(line)
                event()
            }
        } catch {
            followed.error = error
        }
        return followed
    }

    @Test("A server that ends the stream is asked for what came after the last event; a given token may have expired")
    func givenToken() async throws {
        let asked = Asked()
        try await serving({ request in
            asked.add(request) == 1
                ? Self.stream("retry: 2000\n\n", "id: e-1\nevent: a\ndata: {\"sequence\":1}\n\n", "id: e-2\n")
                : Problem(401, "token_expired", "The token has expired.").response
        }) { server in
            let followed = await Self.follow(server, ["--token", "x"], pause: .zero)
            #expect(followed.lines == [#"{"sequence":1}"#])
            #expect(followed.error?.exitCode == 1)
            #expect(followed.error?.message.contains("token_expired") == true, "\(followed.error?.message ?? "")")
            #expect(asked.all.map { $0.headers["Last-Event-ID"] } == [nil, "e-1"])
            #expect(asked.all.map { $0.headers["Authorization"] } == ["Bearer x", "Bearer x"])
        }
    }

    @Test("A stream that ended before its first event is asked for what came after its beginning")
    func beginning() async throws {
        let asked = Asked()
        try await serving({ request in
            asked.add(request) == 1
                ? Self.stream("retry: 2000\nid: e-7\n\n")
                : Problem(401, "token_expired", "The token has expired.").response
        }) { server in
            _ = await Self.follow(server, ["--token", "x"], pause: .zero)
            #expect(asked.all.map { $0.headers["Last-Event-ID"] } == [nil, "e-7"])
        }
    }

    @Test(
        "Whoever follows learns once that it is connected, before any event, and each time that events are no longer kept"
    )
    func remarks() async throws {
        let asked = Asked()
        try await serving({ request in
            switch asked.add(request) {
            case 1: Self.stream("retry: 2000\n\n")
            case 2: Self.stream("retry: 2000\nevent: eventsMissed\ndata: {}\n\n")
            default: Problem(403, "not_permitted", "Not any more.").response
            }
        }) { server in
            let followed = await Self.follow(server, ["--token", "x"], pause: .zero)
            #expect(followed.lines == [])
            #expect(followed.remarks.count == 2, "\(followed.remarks)")
            #expect(followed.remarks.first?.contains("connected to http://127.0.0.1:\(server.port)") == true)
            #expect(followed.remarks.last == ControlClient.missed)
        }
    }

    @Test("A token that the command mints is minted anew each time")
    func mintedAnew() async throws {
        let asked = Asked()
        try await serving({ request in
            asked.add(request) == 1
                ? Self.stream("id: e-1\nevent: a\ndata: {\"sequence\":1}\n\n")
                : Problem(403, "not_permitted", "Not any more.").response
        }) { server in
            // Tokens have whole seconds.
            let followed = await Self.follow(server, ["--dev"], pause: .milliseconds(1_100))
            #expect(followed.error?.exitCode == 1)
            let tokens = asked.all.map { String(($0.headers["Authorization"] ?? "").dropFirst("Bearer ".count)) }
            try #require(tokens.count == 2)
            let verifier = TokenVerifier(.development)
            let (first, second) = (try verifier.verify(tokens[0], at: 0), try verifier.verify(tokens[1], at: 0))
            #expect(first.expiresAt < second.expiresAt)
        }
    }

    @Test("When nobody listens any more the command has done its work")
    func serverEnds() async throws {
        let came = Gate()
        try await serving({ _ in Self.stream("id: e-1\nevent: a\ndata: {\"sequence\":1}\n\n") }) { server in
            async let following = Self.follow(server, ["--token", "x"], pause: .milliseconds(500)) { came.open() }
            await came.wait()
            await server.stop()
            let followed = await following
            #expect(followed.lines.first == #"{"sequence":1}"#)
            #expect(followed.error?.message == nil)
        }
    }
}

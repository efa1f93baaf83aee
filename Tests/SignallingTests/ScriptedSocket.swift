import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import Primitives
import Rooms
import Synchronization

@testable import Signalling

/// A socket whose client is the test.
final class ScriptedSocket: SignallingSocket {
    enum Output: Sendable, Hashable {
        case text(String)
        case closed(UInt16)
    }

    let messages: AsyncStream<WebSocketMessage>
    private let input: AsyncStream<WebSocketMessage>.Continuation
    private let output: AsyncStream<Output>.Continuation
    private let outputs: AsyncStream<Output>

    init() {
        (messages, input) = AsyncStream.makeStream()
        (outputs, output) = AsyncStream.makeStream()
    }

    func send(_ text: String) -> Bool {
        if case .enqueued = output.yield(.text(text)) { return true }
        return false
    }

    func close(code: UInt16, reason: String) {
        output.yield(.closed(code))
        output.finish()
        input.finish()
    }

    /// The client sends something.
    func deliver(_ text: String) { input.yield(.text(text)) }
    func deliver(binary: [UInt8]) { input.yield(.binary(binary)) }
    /// The network breaks.
    func vanish() { input.finish() }

    /// Everything that the server says from now on; one reader.
    func listen() -> Listener { Listener(iterator: outputs.makeAsyncIterator()) }

    struct Listener {
        var iterator: AsyncStream<Output>.AsyncIterator

        /// The next message of `type`, others skipped; nil when the socket closes first.
        mutating func next(_ type: String) async -> Message? {
            while let output = await iterator.next() {
                guard case .text(let text) = output, let message = Message(text) else { return nil }
                if message.type == type { return message }
            }
            return nil
        }

        /// The next message, whatever it is.
        mutating func next() async -> Message? {
            guard case .text(let text)? = await iterator.next() else { return nil }
            return Message(text)
        }

        /// The code with which the socket closes; messages before it are skipped.
        mutating func closeCode() async -> UInt16? {
            while let output = await iterator.next() {
                if case .closed(let code) = output { return code }
            }
            return nil
        }
    }
}

/// A message of the server, as JSON members.
struct Message: @unchecked Sendable {
    let members: [String: Any]
    /// As it came over the socket.
    let text: String

    init?(_ text: String) {
        self.text = text
        guard let members = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
            return nil
        }
        self.members = members
    }

    var type: String { members["type"] as? String ?? "" }
    var id: Int? { members["id"] as? Int }
    var seq: Int? { members["seq"] as? Int }
    var code: String? { members["code"] as? String }
    func text(_ name: String) -> String? { members[name] as? String }
    func object(_ name: String) -> [String: Any]? { members[name] as? [String: Any] }
    func list(_ name: String) -> [[String: Any]]? { members[name] as? [[String: Any]] }
}

/// One client: its socket, what it hears, and the server's side running.
struct Client {
    let socket = ScriptedSocket()
    var ears: ScriptedSocket.Listener
    let server: Task<Void, Never>
    private let end: End
    private var nextID = 1

    /// A client that its test forgets goes away, as one whose process ended would.
    private final class End {
        private let socket: ScriptedSocket
        init(_ socket: ScriptedSocket) { self.socket = socket }
        deinit { socket.vanish() }
    }

    /// Connects as `identity`; `hello` has been heard.
    init(
        _ identity: String, to house: TestRooms, room: String? = "lobby", grant: VideoGrant = .join(nil),
        expiresAt: Int64 = TestTokens.now + 3_600
    ) async throws {
        var claims = try TestTokens.verifier.verify(TestTokens.token(identity, grant), at: TestTokens.now)
        claims.expiresAt = expiresAt
        let session = SignallingSession(
            context: house.context, claims: claims, queryRoom: room, address: "192.0.2.7", userAgent: "agent/1.0",
            origin: JoinOrigin(receivedAt: 0, verification: .zero),
            hello: Hello(
                server: "test", iceServers: [], pingIntervalSeconds: 10, resumeWindowSeconds: 30, maxMessageBytes: 1),
            iceServers: ClientICEServers(house.context.iceServers, claims: claims, room: room, origin: nil),
            eventTexts: EventTexts())
        end = End(socket)
        ears = socket.listen()
        server = Task { [socket] in await session.run(on: socket) }
        _ = await ears.next("hello")
    }

    /// Asks and hears the reply; events before it are skipped.
    mutating func ask(_ type: String, _ fields: String = "") async -> Message? {
        nextID += 1
        socket.deliver("{\"type\":\"\(type)\",\"id\":\(nextID)\(fields.isEmpty ? "" : ",")\(fields)}")
        while let message = await ears.next() {
            if message.id == nextID { return message }
        }
        return nil
    }

    /// Joins; the reply.
    @discardableResult
    mutating func join(_ fields: String = "") async -> Message? { await ask("join", fields) }

    /// Offers `sdp` on a connection; the reply.
    mutating func offer(_ connection: String, _ sdp: String) async -> Message? {
        let text = sdp.replacing("\r\n", with: "\\r\\n")
        return await ask("offer", "\"connection\":\"\(connection)\",\"sdp\":\"\(text)\"")
    }
}

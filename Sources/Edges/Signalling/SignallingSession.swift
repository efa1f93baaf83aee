import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import Primitives
import RoomService
import Rooms

/// One socket from hello to close. Requests are carried out one after the other; events are sent concurrently.
struct SignallingSession: Sendable {
    let context: EdgeContext
    let claims: AccessClaims
    let queryRoom: String?
    /// Where the client is; for limits only.
    let address: String
    /// What the client calls itself in its HTTP request.
    let userAgent: String?
    /// Its HTTP request.
    let origin: JoinOrigin
    let hello: Hello
    let iceServers: ClientICEServers
    let eventTexts: EventTexts

    static let joinTimeout = Duration.seconds(10)
    static let maximumJoins = 10

    /// Serves the socket until it closes. Media continues: the session is detached, not left.
    func run(on socket: some SignallingSocket) async {
        // Even if none expires yet: a reload may add a server whose credentials do.
        let changes = iceServers.changes
        let refreshing = Task { await iceServers.refresh(on: socket, after: changes) }
        defer { refreshing.cancel() }
        socket.send(ServerMessage.hello(hello).text)
        var deadline = joinDeadline(of: socket)
        var state = State()
        var pump: Task<Void, Never>?
        for await message in socket.messages {
            // In a separate task: a task keeps the memory of its deepest stack, and this one waits for hours. 16 kB per socket.
            let before = state
            let isNew: Bool
            (state, isNew) = await Task { await serve(message, before, on: socket) }.value
            if state.waits {
                state.waits = false
                deadline.cancel()
                deadline = joinDeadline(of: socket)
            }
            guard isNew, let attachment = state.attachment else { continue }
            deadline.cancel()
            pump = Task { await attachment.pump(to: socket, texts: eventTexts, rooms: context.rooms) }
        }
        deadline.cancel()
        pump?.cancel()
        await state.attachment?.detach(from: context.rooms)
    }

    /// Closes a socket on which nobody joins, or asks to be let in, in time.
    private func joinDeadline(of socket: some SignallingSocket) -> Task<Void, any Error> {
        Task {
            try await Task.sleep(for: Self.joinTimeout)
            socket.close(code: CloseCode.joinTimeout, reason: "not joined in time")
        }
    }

    /// Answers one message; returns the socket's new state, and whether it has a new session, whose events are to be sent.
    @inline(never)
    private func serve(
        _ message: WebSocketMessage, _ state: State, on socket: some SignallingSocket
    ) async -> (State, isNew: Bool) {
        var state = state
        guard let frame = admit(message, &state, socket) else { return (state, false) }
        let outcome = await handle(frame, &state)
        for reply in outcome.replies {
            let text = reply.text
            if case .snapshot = reply { state.budget.addReply(text.utf8.count, at: context.now()) }
            socket.send(text)
        }
        if outcome.leaves, let attachment = state.attachment { await attachment.leave(context.rooms) }
        if let (code, reason) = outcome.closing { socket.close(code: code, reason: reason) }
        return (state, outcome.isNew)
    }

    /// The state of the socket between two requests.
    struct State: Sendable {
        var attachment: Attachment?
        var session: SessionID? { attachment?.session }
        var joins = 0
        /// Those of a newer token than the one that opened the socket.
        var claims: AccessClaims?
        /// Its client has just asked to join, and waits to be let in: it has more time.
        var waits = false
        var budget = RequestBudget()
    }

    /// The frame in `message`, if the budget and the kind of frame permit it.
    private func admit(
        _ message: WebSocketMessage, _ state: inout State, _ socket: some SignallingSocket
    ) -> ClientFrame? {
        guard case .text(let text) = message else {
            socket.close(code: CloseCode.unsupportedData, reason: "text frames only")
            return nil
        }
        switch state.budget.spend(text.utf8.count, at: context.now()) {
        case .go:
            let frame = ClientFrame(text: text)
            // The snapshot of a room of thousands has a megabyte, for a request of twenty bytes.
            guard case .success(.snapshot) = frame.request, !state.budget.allowsLongReply(at: context.now()) else {
                return frame
            }
            socket.send(ServerMessage.error(id: frame.id, .tooManyRequests).text)
        case .refuse:
            socket.send(ServerMessage.error(id: ClientFrame(text: text).id, .tooManyRequests).text)
        case .close:
            socket.close(code: CloseCode.policyViolation, reason: "too many requests")
        }
        return nil
    }
}

/// What came of one frame.
struct Outcome: Sendable {
    var replies: [ServerMessage] = []
    /// The socket has a session from now on, whose events are to be sent after the replies.
    var isNew = false
    /// The session is to be left after the replies.
    var leaves = false
    /// The socket is closed after the replies.
    var closing: (code: UInt16, reason: String)?

    static func reply(_ message: ServerMessage) -> Self { Self(replies: [message]) }
}

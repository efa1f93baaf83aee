import Synchronization

/// One open WebSocket. All of it can be used from any thread.
public final class WebSocketConnection: Sendable {
    /// The upgrade request, with the route's parameters.
    public let request: HTTPRequest
    /// The selected subprotocol; nil if the client named none.
    public let subprotocol: String?
    /// The client's messages, in order; ends when the socket closes. One reader.
    public let messages: AsyncStream<WebSocketMessage>

    private enum Phase {
        case open
        /// A close frame follows what is queued.
        case closing(WebSocketClose)
        case closed(WebSocketClose)
    }

    private struct State {
        var phase = Phase.open
        var queue: [WebSocketMessage] = []
        var head = 0
        var queuedBytes = 0
        var isFlushing = false
        var wasTooSlow = false
        /// Waits until nothing is queued.
        var drainWaiter: CheckedContinuation<Bool, Never>?

        /// Whether one more message of `size` is too much. The largest message does not count: the snapshot of a room of thousands is one message, and
        /// without it a client could never get in.
        func isFull(for size: Int, _ limits: WebSocketLimits) -> Bool {
            if queue.count - head >= limits.maximumQueuedMessages { return true }
            let bytes = queuedBytes + size
            guard bytes > limits.maximumQueuedBytes else { return false }
            return bytes - queue[head...].reduce(size) { max($0, $1.size) } > limits.maximumQueuedBytes
        }

        mutating func dropQueue() {
            queue = []
            head = 0
            queuedBytes = 0
        }
    }

    private let state = Mutex(State())
    private let limits: WebSocketLimits
    private let incoming: AsyncStream<WebSocketMessage>.Continuation
    /// Asks the HTTP thread to check the queue.
    private let requestFlush: @Sendable () -> Void

    init(
        request: HTTPRequest, subprotocol: String?, limits: WebSocketLimits,
        requestFlush: @escaping @Sendable () -> Void
    ) {
        self.request = request
        self.subprotocol = subprotocol
        self.limits = limits
        self.requestFlush = requestFlush
        (messages, incoming) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(limits.maximumIncomingMessages))
    }

    /// Queues a text message; never waits.
    ///
    /// false if the socket is closed or its reader so slow that the queue is full; in the latter case the socket is
    /// being closed with 1013.
    @discardableResult
    public func send(_ text: String) -> Bool { enqueue(.text(text), size: text.utf8.count) }

    /// Queues a binary message; like `send(_:)`.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool { enqueue(.binary(bytes), size: bytes.count) }

    /// Queues a text message and waits until everything queued has been sent, so that a slow reader makes the source wait, and fills no memory of the server.
    /// false if the socket closed meanwhile. One task at a time.
    public func sendAndDrain(_ text: String) async -> Bool {
        guard send(text) else { return false }
        return await withCheckedContinuation { continuation in
            let outcome = state.withLock { state -> Bool? in
                guard case .open = state.phase else { return false }
                guard state.isFlushing else { return true }
                precondition(state.drainWaiter == nil, "one task at a time waits for a WebSocket")
                state.drainWaiter = continuation
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }

    /// Sends what is queued, then a close frame. The first call wins.
    public func close(code: UInt16 = 1000, reason: String = "") {
        let reason = Self.shortened(reason)
        let isFirst = state.withLock { state -> Bool in
            guard case .open = state.phase else { return false }
            state.phase = .closing(WebSocketClose(code: code, reason: reason))
            state.isFlushing = true
            return true
        }
        // Also if a flush is in progress: it may wait for a client that reads nothing, and the time to close begins now.
        if isFirst { requestFlush() }
    }

    /// Whether the socket accepts messages.
    public var isOpen: Bool {
        state.withLock { if case .open = $0.phase { true } else { false } }
    }

    /// Why it closed; nil while it is open.
    public var closed: WebSocketClose? {
        state.withLock { if case .closed(let close) = $0.phase { close } else { nil } }
    }

    private func enqueue(_ message: WebSocketMessage, size: Int) -> Bool {
        let (isTaken, needsFlush) = state.withLock { state -> (Bool, Bool) in
            guard case .open = state.phase else { return (false, false) }
            let isFull = state.isFull(for: size, limits)
            if isFull {
                state.phase = .closing(WebSocketClose(code: 1013, reason: "the client reads too slowly"))
                state.wasTooSlow = true
                state.dropQueue()
            } else {
                state.queue.append(message)
                state.queuedBytes += size
            }
            defer { state.isFlushing = true }
            return (!isFull, isFull || !state.isFlushing)
        }
        if needsFlush { requestFlush() }
        return isTaken
    }

    /// At most 123 bytes, the capacity of a close frame (RFC 6455 section 5.5), cut between characters.
    private static func shortened(_ reason: String) -> String {
        var reason = reason
        while reason.utf8.count > 123 { reason.removeLast() }
        return reason
    }
}

// For the HTTP thread.
extension WebSocketConnection {
    /// What to do next with the socket.
    enum Next {
        case send(WebSocketMessage)
        case close(WebSocketClose)
        case nothing
    }

    /// The next message in the queue, then the close frame. After `nothing`, a new flush is requested later.
    func next() -> Next {
        let (next, waiter) = state.withLock { state -> (Next, CheckedContinuation<Bool, Never>?) in
            let next = dequeue(&state)
            if case .send = next { return (next, nil) }
            defer { state.drainWaiter = nil }
            return (next, state.drainWaiter)
        }
        // Only an open socket has nothing to do.
        if case .nothing = next { waiter?.resume(returning: true) } else { waiter?.resume(returning: false) }
        return next
    }

    private func dequeue(_ state: inout State) -> Next {
        if state.head < state.queue.count {
            let message = state.queue[state.head]
            state.head += 1
            state.queuedBytes -= message.size
            if state.head == state.queue.count {
                state.queue.removeAll(keepingCapacity: state.head <= 64)
                state.head = 0
            } else if state.head >= 256 {
                state.queue.removeFirst(state.head)
                state.head = 0
            }
            return .send(message)
        }
        if case .closing(let close) = state.phase { return .close(close) }
        state.isFlushing = false
        return .nothing
    }

    /// Closes without sending the queue: the client has closed, or broke a rule.
    func closeNow(_ close: WebSocketClose) {
        state.withLock { state in
            if case .closed = state.phase { return }
            state.phase = .closing(WebSocketClose(code: close.code, reason: Self.shortened(close.reason)))
            state.dropQueue()
        }
    }

    /// Whether it is being closed because its reader was too slow; true only once.
    func consumeSlowReader() -> Bool {
        state.withLock { state in
            defer { state.wasTooSlow = false }
            return state.wasTooSlow
        }
    }

    /// Passes a message to the reader; returns how many wait then, or nil if there are too many already.
    func deliver(_ message: WebSocketMessage) -> Int? {
        switch incoming.yield(message) {
        case .enqueued(let remaining): limits.maximumIncomingMessages - remaining
        case .terminated: 0
        case .dropped: nil
        @unknown default: nil
        }
    }

    /// The socket has closed: ends the stream of messages.
    func finish(_ close: WebSocketClose) {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            switch state.phase {
            case .closed: return nil
            // A connection that broke while it was being closed reports the reason for closing.
            case .closing(let own) where close.code == 1006: state.phase = .closed(own)
            case .closing, .open: state.phase = .closed(close)
            }
            state.dropQueue()
            defer { state.drainWaiter = nil }
            return state.drainWaiter
        }
        waiter?.resume(returning: false)
        incoming.finish()
    }

    /// No reader is left: incoming messages are discarded.
    func stopReading() { incoming.finish() }
}

extension WebSocketMessage {
    /// Bytes of its payload.
    var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }
}

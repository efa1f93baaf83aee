import CSoup
import Primitives

/// A handshake that was accepted and is being written.
struct WebSocketUpgrade {
    let request: HTTPRequest
    let session: @Sendable (WebSocketConnection) async -> Void
}

/// The stream of one WebSocket and what is half written to it. Belongs to the loop's thread.
final class WebSocketSession {
    /// Bytes encoded ahead: the rest waits in the connection's own, bounded queue.
    private static let aheadBytes = 32 << 10
    /// Bytes read in one go, and how often before others get their turn.
    private static let readBytes = 16 << 10
    private static let readsPerTurn = 8

    /// How the stream stands after a call.
    enum Standing {
        /// It may go on.
        case alive
        /// It takes no more bytes for now.
        case blocked
        /// It is over; why, as seen from here.
        case over(WebSocketClose)
    }

    let id: UInt64
    let connection: WebSocketConnection
    let socket: UnsafeMutablePointer<GSocket>?
    private let stream: UnsafeMutablePointer<GIOStream>
    /// Runs the edge's code; ends when the stream of messages ends.
    var task: Task<Void, Never>?
    /// How it learns of bytes: its descriptor among the listener's `ReadableSockets`, or a source of its own.
    var watched: Int32?
    var readSource: GLibSource?
    var writeSource: GLibSource?
    var closeTimer: GLibSource?
    /// Whether anything came since the last ping, and how many pings went unanswered.
    var wasHeard = true
    var silentPings = 0

    private var decoder: WebSocketDecoder
    private var events: [WebSocketDecoder.Event] = []
    private var output: [UInt8] = []
    private var written = 0
    /// Control frames that go before messages. At most one pong (RFC 6455 section 5.5.3) and one ping.
    private var pong: [UInt8]?
    private var pingIsDue = false
    private var sentClose: WebSocketClose?
    private var receivedClose: WebSocketClose?
    /// The rule or limit that the client broke; what it sends from then on is thrown away.
    private var failure: WebSocketClose?

    init(
        id: UInt64, stream: UnsafeMutablePointer<GIOStream>, socket: UnsafeMutablePointer<GSocket>?,
        connection: WebSocketConnection, limits: WebSocketLimits
    ) {
        self.id = id
        self.stream = stream
        self.socket = socket
        self.connection = connection
        decoder = WebSocketDecoder(maximumMessageBytes: limits.maximumMessageBytes)
        g_object_ref(stream)
        if let socket { g_object_ref(socket) }
    }

    deinit {
        g_object_unref(stream)
        if let socket { g_object_unref(socket) }
    }

    var input: OpaquePointer? { csoup_pollable_input(stream) }
    var outputStream: OpaquePointer? { csoup_pollable_output(stream) }

    /// Why it is over, as far as the frames tell.
    private var outcome: WebSocketClose {
        receivedClose ?? failure ?? sentClose ?? WebSocketClose(code: 1006, reason: "")
    }

    /// Reads what is there; each message goes to `deliver`.
    func read(deliver: (WebSocketMessage) -> Void, failed: (WebSocketClose) -> Void) -> Standing {
        guard let input else { return .over(outcome) }
        for _ in 0..<Self.readsPerTurn {
            let count = withUnsafeTemporaryAllocation(byteCount: Self.readBytes, alignment: 16) { bytes -> Int in
                let count = csoup_read(input, bytes.baseAddress, gsize(bytes.count))
                if count > 0 {
                    wasHeard = true
                    decoder.receive(UnsafeRawBufferPointer(rebasing: bytes[..<count]), events: &events)
                }
                return count
            }
            handle(deliver, failed)
            if count == -1 { return .alive }
            if count <= 0 { return .over(outcome) }
        }
        return .alive
    }

    private func handle(_ deliver: (WebSocketMessage) -> Void, _ failed: (WebSocketClose) -> Void) {
        for event in events {
            switch event {
            case .message(let message): deliver(message)
            case .ping(let payload): pong = payload
            case .pong: break
            case .failure(let close):
                failed(close)
                failure = close
                connection.closeNow(close)
            case .close(let close):
                receivedClose = close
                // Echoed, unless ours is on its way already.
                connection.closeNow(close)
            }
        }
        events.removeAll(keepingCapacity: true)
    }

    /// Writes what waits, control frames first; adds the number of messages that began to leave.
    func write(messages: inout UInt64) -> Standing {
        guard let outputStream else { return .over(outcome) }
        while true {
            if written == output.count {
                // Not kept: a socket is silent for minutes, and the longest message that it ever had is some 4 kB.
                output = []
                written = 0
                refill(&messages)
                if output.isEmpty { break }
            }
            let count = output.withUnsafeBytes { bytes in
                csoup_write(outputStream, bytes.baseAddress! + written, gsize(bytes.count - written))
            }
            if count == -1 { return .blocked }
            if count < 0 { return .over(outcome) }
            written += count
        }
        // Both close frames have passed: the server ends the connection (section 7.1.1).
        if sentClose != nil, receivedClose != nil { return .over(outcome) }
        // Closing with bytes unread would reset the connection and take the close frame with it: let the client end it.
        if sentClose != nil, failure != nil, let socket { g_socket_shutdown(socket, 0, 1, nil) }
        return .alive
    }

    private func refill(_ messages: inout UInt64) {
        guard sentClose == nil else { return }
        if let payload = pong {
            WebSocketFrame.append(.pong, payload, to: &output)
            pong = nil
        }
        if pingIsDue {
            WebSocketFrame.append(.ping, [], to: &output)
            pingIsDue = false
        }
        while output.count < Self.aheadBytes {
            switch connection.next() {
            case .nothing: return
            case .send(let message):
                WebSocketFrame.append(message, to: &output)
                messages += 1
            case .close(let close):
                WebSocketFrame.append(close, to: &output)
                sentClose = close
                return
            }
        }
    }

    /// A ping with the next write.
    func ping() { pingIsDue = true }

    /// Breaks the connection without a word; the read source then finds it ended.
    func abort() {
        if let socket { g_socket_shutdown(socket, 1, 1, nil) }
    }

    /// Lets go of the stream, the timers and the edge's code.
    func end(_ close: WebSocketClose) {
        for source in [readSource, writeSource, closeTimer] { source?.cancel() }
        readSource = nil
        writeSource = nil
        closeTimer = nil
        connection.finish(close)
        g_io_stream_close_async(stream, G_PRIORITY_DEFAULT, nil, nil, nil)
    }
}

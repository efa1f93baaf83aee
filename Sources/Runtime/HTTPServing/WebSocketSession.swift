import NetworkIO
import Primitives

/// The partly read and partly written data of one WebSocket. Belongs to the loop's thread.
final class WebSocketSession {
    /// Bytes encoded ahead: the rest waits in the connection's own bounded queue.
    private static let aheadBytes = 32 << 10

    let connection: WebSocketConnection
    private let stream: ByteStream
    /// Runs the edge's code; ends when the stream of messages ends.
    var task: Task<Void, Never>?
    /// Whether anything arrived since the last ping, and how many pings are unanswered.
    private var wasHeard = true
    private var silentPings = 0

    private var decoder: WebSocketDecoder
    private var backlog: MessageBacklog
    private var events: [WebSocketDecoder.Event] = []
    /// Frames that contain no message: however many a client sends, they cost only itself.
    private var idleFrames = RateLimit()
    private let limits: WebSocketLimits
    /// Control frames that are sent before messages. At most one pong (RFC 6455 section 5.5.3) and one ping.
    private var pong: [UInt8]?
    private var pingIsDue = false
    private var sentClose: WebSocketClose?
    private var receivedClose: WebSocketClose?
    /// The rule or limit that the client broke; everything that it sends from then on is discarded.
    private var failure: WebSocketClose?

    init(connection: WebSocketConnection, stream: ByteStream, limits: WebSocketLimits) {
        self.stream = stream
        self.connection = connection
        decoder = WebSocketDecoder(
            maximumMessageBytes: limits.maximumMessageBytes, maximumFragments: limits.maximumFragments)
        backlog = MessageBacklog(limit: limits.maximumIncomingBytes)
        self.limits = limits
    }

    /// Why it has ended, as far as the frames show.
    var outcome: WebSocketClose {
        receivedClose ?? failure ?? sentClose ?? WebSocketClose(code: 1006, reason: "")
    }

    /// The result of receiving bytes.
    struct Received {
        var messages: UInt64 = 0
        /// The rule that the client has just broken, and the limit, if it is one.
        var failure: (close: WebSocketClose, limit: HTTPLimit?)?
    }

    /// Consumes bytes of the client; its messages go to the connection.
    func receive(_ bytes: UnsafeRawBufferPointer, at now: MonotonicTime) -> Received {
        wasHeard = true
        var received = Received()
        guard failure == nil else { return received }
        decoder.receive(bytes, events: &events)
        for event in events {
            guard received.failure == nil else { break }
            switch event {
            case .message(let message):
                received.messages += 1
                received.failure = deliver(message)
            case .ping(let payload):
                pong = payload
                received.failure = spendFrame(at: now)
            case .pong: received.failure = spendFrame(at: now)
            case .failure(let close): received.failure = (close, close.code == 1008 ? .controlFrames : nil)
            case .close(let close):
                receivedClose = close
                // Echoed, unless the server's own close frame is already on its way.
                connection.closeNow(close)
            }
        }
        events.removeAll(keepingCapacity: true)
        if let failure = received.failure {
            self.failure = failure.close
            pong = nil
            connection.closeNow(failure.close)
        }
        return received
    }

    private func deliver(_ message: WebSocketMessage) -> (close: WebSocketClose, limit: HTTPLimit?)? {
        if let waiting = connection.deliver(message), backlog.add(message.size, waiting: waiting) { return nil }
        return (WebSocketClose(code: 1008, reason: "too many unread messages"), .messages)
    }

    private func spendFrame(at now: MonotonicTime) -> (close: WebSocketClose, limit: HTTPLimit?)? {
        let interval = TimeSpan.seconds(1) / Int64(limits.maximumControlFramesPerSecond)
        if idleFrames.accept(every: interval, atOnce: limits.maximumControlFramesAtOnce, at: now) { return nil }
        return (WebSocketClose(code: 1008, reason: "too many control frames"), .controlFrames)
    }

    /// Writes what waits, control frames first; adds the number of messages whose sending began. `.ended` if it has ended.
    func write(messages: inout UInt64) -> TCPSocket.Outcome {
        while true {
            if !stream.hasOutput { refill(&messages) }
            guard stream.hasOutput else { break }
            let outcome = stream.flush()
            guard case .bytes = outcome else { return outcome }
        }
        // Both close frames have been sent: the server ends the connection (section 7.1.1).
        if sentClose != nil, receivedClose != nil { return .ended }
        // Closing with unread bytes would reset the connection and lose the close frame: let the client end it.
        if sentClose != nil, failure != nil { stream.finishWriting() }
        return .bytes(0)
    }

    private func refill(_ messages: inout UInt64) {
        guard sentClose == nil else { return }
        var output: [UInt8] = []
        defer { stream.queue(output) }
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

    /// Sends a ping with the next write; false if the client has answered neither of the last two.
    func ping() -> Bool {
        silentPings = wasHeard ? 0 : silentPings + 1
        wasHeard = false
        pingIsDue = true
        return silentPings < 2
    }
}

/// The bytes of messages that wait to be handled.
struct MessageBacklog {
    private let limit: Int
    private var sizes: [Int] = []
    private var bytes = 0

    init(limit: Int) { self.limit = limit }

    /// Adds a message, after which this many wait, including itself; false if they are too large together.
    mutating func add(_ size: Int, waiting: Int) -> Bool {
        sizes.append(size)
        bytes += size
        let handled = sizes.count - min(waiting, sizes.count)
        bytes -= sizes[..<handled].reduce(0, +)
        sizes.removeFirst(handled)
        return bytes <= limit
    }
}

import Logging
import NetworkIO
import Primitives

/// An upgrade that a route has accepted.
struct WebSocketUpgrade: Sendable {
    let request: HTTPRequest
    let handshake: WebSocketHandshake
    let session: @Sendable (WebSocketConnection) async -> Void
    let abandoned: (@Sendable () async -> Void)?

    /// Runs if the socket does not open.
    func abandon() {
        guard let abandoned else { return }
        Task.detached { await abandoned() }
    }
}

/// The life of a WebSocket: decision, handshake, messages in both directions, end.
extension HTTPListener {
    private static let stopping = HTTPRefusal(
        status: 503, code: "draining", detail: "The server is shutting down.")
    private static let tooMany = HTTPRefusal(
        status: 503, code: "overloaded", detail: "Too many WebSockets are open.")
    private static let tooManyOfAddress = HTTPRefusal(
        status: 503, code: "overloaded", detail: "Too many WebSockets are open from this address.")

    /// An upgrade request on a WebSocket path: asks the route, then upgrades or sends a response.
    func considerUpgrade(_ connection: HTTPConnection, _ route: WebSocketRoute, _ parameters: [String: String]) {
        guard var request = connection.request else { return }
        request.parameters = parameters
        if let refusal = obstacle(for: connection) { return refuse(connection, refusal) }
        do throws(HTTPRefusal) {
            let handshake = try WebSocketHandshake(request.headers, protocols: route.protocols)
            work(connection) { [request] in
                switch await route.decide(request) {
                case .refuse(let response): (response, nil)
                case .accept(let abandoned, let session):
                    (
                        nil,
                        WebSocketUpgrade(
                            request: request, handshake: handshake, session: session, abandoned: abandoned)
                    )
                }
            }
        } catch {
            var response = response(to: connection, error)
            response.headers["Sec-WebSocket-Version"] = "13"
            answer(connection, response)
        }
    }

    /// Why no WebSocket can open on `connection` now; nil: it can.
    func webSocketRefusal(of connection: HTTPConnection) -> HTTPRefusal? {
        // A socket that opens after all others were closed would stay.
        if isDraining { return Self.stopping }
        if webSockets.isFull { return Self.tooMany }
        return webSockets.isFull(for: connection.client) ? Self.tooManyOfAddress : nil
    }

    /// The same for a socket that is about to open.
    private func obstacle(for connection: HTTPConnection) -> HTTPRefusal? {
        let refusal = webSocketRefusal(of: connection)
        if refusal == Self.tooMany {
            reached(.webSockets, "WebSocket limit reached; a new one is refused")
        } else if refusal == Self.tooManyOfAddress {
            reached(.addressWebSockets, "WebSocket limit of a client address reached; a new one is refused")
        }
        return refusal
    }

    /// The connection uses WebSocket from now on; the response that announces it is sent first.
    func upgrade(_ connection: HTTPConnection, _ upgrade: WebSocketUpgrade) {
        // Checked again: the route's decision took time.
        if let refusal = obstacle(for: connection) {
            upgrade.abandon()
            return refuse(connection, refusal)
        }
        let limits = configuration.webSocket
        let id = connection.id
        let socket = WebSocketConnection(
            request: upgrade.request, subprotocol: upgrade.handshake.subprotocol, limits: limits,
            requestFlush: { [flushRequests] in _ = flushRequests.post(id) })
        let session = WebSocketSession(connection: socket, stream: connection.stream, limits: limits)
        plain.leave(id)
        webSockets.enter(id, connection.client)
        counters.change {
            $0.requestsInWork -= 1
            $0.responses[1] += 1
            $0.webSockets += 1
        }
        connection.request = nil
        connection.phase = .webSocket(session)
        connection.stream.queue(upgrade.handshake.response)
        schedule(connection, .distantFuture)
        startPinging()
        session.task = Task.detached {
            await upgrade.session(socket)
            socket.stopReading()
            socket.close()
        }
        // Bytes that the client has sent after its request.
        let rest = connection.reader.drainBuffer()
        rest.withUnsafeBytes { receive($0, session) }
        writeWebSocket(connection, session)
    }

    func readWebSocket(_ connection: HTTPConnection, _ session: WebSocketSession) {
        var reads = 0
        var outcome = TCPSocket.Outcome.bytes(0)
        while case .bytes = outcome, reads < HTTPConnection.readsPerTurn || connection.stream.hasPendingInput {
            reads += 1
            outcome = withUnsafeTemporaryAllocation(byteCount: HTTPConnection.readBytes, alignment: 16) { bytes in
                let outcome = connection.stream.read(into: bytes)
                if case .bytes(let count) = outcome {
                    receive(UnsafeRawBufferPointer(rebasing: bytes[..<count]), session)
                }
                return outcome
            }
        }
        if outcome == .ended { end(connection) } else { writeWebSocket(connection, session) }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, _ session: WebSocketSession) {
        let received = session.receive(bytes, at: now)
        counters.change { $0.messagesReceived += received.messages }
        guard let failure = received.failure, [1008, 1009].contains(failure.close.code) else { return }
        counters.change { $0.webSocketLimitsHit += 1 }
        if let limit = failure.limit { reached(limit, "WebSocket closed: \(failure.close.reason)") }
    }

    /// Writes what other threads have queued.
    func flushWebSockets() {
        var ids: [UInt64] = []
        flushRequests.drain(into: &ids)
        for id in ids {
            guard let connection = connections[id], case .webSocket(let session) = connection.phase else { continue }
            writeWebSocket(connection, session)
        }
    }

    /// Writes what waits; if the socket accepts no more, the loop continues when it does.
    func writeWebSocket(_ connection: HTTPConnection, _ session: WebSocketSession) {
        if session.connection.consumeSlowReader() {
            counters.change { $0.slowReaders += 1 }
            logger.warning(
                "WebSocket closed: the client reads too slowly",
                ["client": .host(session.connection.request.remoteAddress)])
        }
        var messages: UInt64 = 0
        let outcome = session.write(messages: &messages)
        if messages > 0 { counters.change { $0.messagesSent += messages } }
        if outcome == .ended { return end(connection) }
        if !session.connection.isOpen, !connection.timeout.isSet {
            schedule(connection, now + configuration.webSocket.closeTimeout)
        }
        watch(connection)
    }

    /// One deadline for all: at each tenth of the interval, a tenth of the sockets is pinged.
    private func startPinging() {
        guard !isPinging, !webSockets.isEmpty else { return }
        isPinging = true
        deadlines.add(now + configuration.webSocket.pingInterval / Int64(OpenWebSockets.turns), Mark.pings)
    }

    func pingSome() {
        isPinging = false
        for id in webSockets.nextTurn() {
            guard let connection = connections[id], case .webSocket(let session) = connection.phase else { continue }
            if session.ping() { writeWebSocket(connection, session) } else { end(connection) }
        }
        startPinging()
    }

    /// Removes a socket that has ended.
    func endWebSocket(_ connection: HTTPConnection, _ session: WebSocketSession) {
        webSockets.leave(connection.id)
        session.connection.finish(session.outcome)
        if isDraining { session.task?.cancel() }
        counters.change { $0.webSockets -= 1 }
    }
}

import CSoup
import Logging
import Primitives

/// The way of a WebSocket: decision, handshake, messages both ways, end.
extension HTTPListener {
    /// Bytes that may wait unsent in the kernel: beyond that a socket counts as not writable and messages wait in our queue.
    private static let unsentBytes: gint = 64 << 10

    /// An upgrade request on a WebSocket path: asks the route, then upgrades or answers.
    func considerUpgrade(_ exchange: Exchange, _ request: HTTPRequest, _ route: WebSocketRoute) {
        var error: UnsafeMutablePointer<GError>?
        let isWellFormed = withProtocols(route) {
            soup_websocket_server_check_handshake(exchange.message.pointer, nil, $0, nil, &error) != 0
        }
        guard isWellFormed else {
            let refusal = HTTPRefusal(status: 400, code: "bad_handshake", detail: takeMessage(error))
            return answer(exchange, configuration.refuse(refusal))
        }
        let id = exchange.id
        let key = exchange.message.key
        run(exchange) { listener in
            let decision = await route.decide(request)
            await listener.decided(key, id, request, route, decision)
        }
    }

    private func decided(
        _ key: UInt, _ id: UInt64, _ request: HTTPRequest, _ route: WebSocketRoute, _ decision: WebSocketDecision
    ) {
        guard let exchange = exchanges[key], exchange.id == id, case .waiting = exchange.phase else { return }
        switch decision {
        case .refuse(let response): answer(exchange, response)
        case .accept(let session):
            exchange.timer?.cancel()
            let message = exchange.message.pointer
            // It was checked before; libsoup now writes the 101 or, should it disagree, its own 400.
            let isAccepted = withProtocols(route) {
                soup_websocket_server_process_handshake(message, nil, $0, nil, nil) != 0
            }
            if isAccepted {
                exchange.phase = .upgrading(WebSocketUpgrade(request: request, session: session))
                connect(message, "wrote-informational", soupWroteInformational as MessageSignal, self)
            } else {
                exchange.phase = .answered
            }
            soup_server_message_unpause(message)
        }
    }

    private func withProtocols<Result>(
        _ route: WebSocketRoute, _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Result
    ) -> Result {
        guard !route.protocols.isEmpty else { return body(nil) }
        var names = route.protocols.map { g_strdup($0) } + [nil]
        defer { for name in names { g_free(name) } }
        return names.withUnsafeMutableBufferPointer { body($0.baseAddress) }
    }

    /// The 101 has left: the stream is ours.
    func handshakeIsWritten(_ message: SoupMessage) {
        guard let exchange = exchanges[message.key], case .upgrading(let upgrade) = exchange.phase else { return }
        let socket = message.socket
        let subprotocol = soup_message_headers_get_one(
            soup_server_message_get_response_headers(message.pointer), "Sec-WebSocket-Protocol")
        guard let stream = soup_server_message_steal_connection(message.pointer) else { return }
        defer { g_object_unref(stream) }
        exchanges[message.key] = nil
        counters.change {
            $0.requestsInWork -= 1
            $0.responses[1] += 1
        }
        if let socket { prepare(socket) }
        open(stream, socket, upgrade, subprotocol.map { String(cString: $0) })
    }

    private func prepare(_ socket: UnsafeMutablePointer<GSocket>) {
        g_socket_set_timeout(socket, 0)
        g_socket_set_option(socket, gint(IPPROTO_TCP), TCP_NODELAY, 1, nil)
        g_socket_set_option(socket, gint(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.unsentBytes, nil)
    }

    private func open(
        _ stream: UnsafeMutablePointer<GIOStream>, _ socket: UnsafeMutablePointer<GSocket>?,
        _ upgrade: WebSocketUpgrade, _ subprotocol: String?
    ) {
        let limits = configuration.webSocket
        let id = nextID()
        let connection = WebSocketConnection(
            request: upgrade.request, subprotocol: subprotocol, limits: limits,
            requestFlush: { [weak self] in self?.scheduleWrite(id) })
        let session = WebSocketSession(
            id: id, stream: stream, socket: socket, connection: connection, limits: limits)
        guard session.input != nil else { return }
        counters.change { $0.webSockets += 1 }
        webSockets[id] = session
        watch(session)
        startPinging()
        session.task = Task.detached {
            await upgrade.session(connection)
            connection.stopReading()
            connection.close()
        }
    }

    /// Bytes came in; whether to watch for more.
    func readWebSocket(_ id: UInt64) -> Bool {
        guard let session = webSockets[id] else { return false }
        let standing = session.read(
            deliver: { deliver($0, to: session) },
            failed: { if $0.code == 1009 { counters.change { $0.webSocketLimitsHit += 1 } } })
        if case .over(let close) = standing {
            endWebSocket(session, close)
            return false
        }
        writeWebSocket(id)
        return webSockets[id] != nil
    }

    private func deliver(_ message: WebSocketMessage, to session: WebSocketSession) {
        counters.change { $0.messagesReceived += 1 }
        guard !session.connection.deliver(message) else { return }
        counters.change { $0.webSocketLimitsHit += 1 }
        session.connection.closeNow(WebSocketClose(code: 1008, reason: "too many messages wait"))
    }

    private nonisolated func scheduleWrite(_ id: UInt64) {
        loop.async { [weak self] in self?.assumeIsolated { $0.writeWebSocket(id) } }
    }

    /// Writes what waits and, when the socket takes no more, comes back when it does.
    func writeWebSocket(_ id: UInt64) {
        guard let session = webSockets[id] else { return }
        if session.connection.takeSlowReader() {
            counters.change { $0.slowReaders += 1 }
            logger.warning(
                "a WebSocket reader is too slow", ["client": .host(session.connection.request.remoteAddress)])
        }
        var messages: UInt64 = 0
        let standing = session.write(messages: &messages)
        if messages > 0 { counters.change { $0.messagesSent += messages } }
        if !session.connection.isOpen { startCloseTimer(session) }
        switch standing {
        case .alive: session.writeSource = nil
        case .over(let close): endWebSocket(session, close)
        case .blocked:
            guard session.writeSource == nil, let output = session.outputStream else { return }
            session.writeSource = GLibSource(writable: output, on: loop) { [weak self] in
                self?.assumeIsolated { listener in
                    listener.writeWebSocket(id)
                    return listener.webSockets[id]?.writeSource != nil
                } ?? false
            }
        }
    }

    private func startCloseTimer(_ session: WebSocketSession) {
        guard session.closeTimer == nil else { return }
        let id = session.id
        session.closeTimer = GLibSource(every: configuration.webSocket.closeTimeout, on: loop) { [weak self] in
            self?.assumeIsolated { $0.webSockets[id]?.abort() }
            return false
        }
    }

    /// Takes a socket that is over from the books.
    func endWebSocket(_ session: WebSocketSession, _ close: WebSocketClose) {
        guard webSockets.removeValue(forKey: session.id) != nil else { return }
        if let descriptor = session.watched { readable?.remove(descriptor) }
        session.end(close)
        counters.change { $0.webSockets -= 1 }
        endDrainIfDone()
    }
}

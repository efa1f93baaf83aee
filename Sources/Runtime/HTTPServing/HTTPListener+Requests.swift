import CSoup
import Logging
import Primitives

/// The way of a request: head, body, handler, response.
extension HTTPListener {
    /// What a refused client may go on sending before it is cut off: enough for it to notice the answer.
    private static let patienceBytes = 64 << 20

    /// libsoup makes a message when a connection opens and for each request that follows.
    func connectionIsActive(_ message: SoupMessage) {
        guard let socket = message.socket else { return }
        connect(message.pointer, "got-headers", soupGotHeaders as MessageSignal, self)
        connect(message.pointer, "got-chunk", soupGotChunk as ChunkSignal, self)
        connect(message.pointer, "finished", soupFinished as MessageSignal, self)
        admit(socket)
    }

    func headArrived(_ message: SoupMessage) {
        if let socket = message.socket { headless[UInt(bitPattern: socket)] = nil }
        guard message.status == 0 else { return }
        let head = HTTPRequestHead(
            message, isSecure: configuration.tls != nil, trustsForwardedFields: configuration.trustsForwardedFields)
        let exchange = Exchange(id: nextID(), message: message, head: head)
        exchanges[message.key] = exchange
        message.doNotAccumulate()
        counters.change { $0.requestsInWork += 1 }
        startTimer(exchange)
        if let refusal = refusal(of: head, announced: message.announcedLength) { exchange.phase = .refused(refusal) }
        // A client that waits for "100 Continue" is answered at once; any other once it has sent its body.
        if case .refused(let refusal) = exchange.phase, head.headers["Expect"] != nil {
            answer(exchange, configuration.refuse(refusal))
        }
    }

    private func refusal(of head: HTTPRequestHead, announced: Int64) -> HTTPRefusal? {
        if configuration.servesLoopbackOnly && !head.isLoopback {
            return HTTPRefusal(
                status: 403, code: "loopback_only",
                detail: "Without TLS or a trusted proxy only this machine is served.")
        }
        if head.target.utf8.count > configuration.maximumTargetBytes {
            return HTTPRefusal(status: 414, code: "target_too_long", detail: "The path with its query is too long.")
        }
        if head.headerBytes > configuration.maximumHeaderBytes {
            return HTTPRefusal(status: 431, code: "headers_too_large", detail: "The header fields are too large.")
        }
        if announced > Int64(configuration.maximumBodyBytes) { return bodyTooLarge }
        if counters.statistics.requestsInWork > configuration.maximumConcurrentRequests {
            counters.change { $0.overloads += 1 }
            return HTTPRefusal(status: 503, code: "overloaded", detail: "Too many requests are in work; try again.")
        }
        return nil
    }

    private var bodyTooLarge: HTTPRefusal {
        HTTPRefusal(
            status: 413, code: "body_too_large",
            detail: "The body may have \(configuration.maximumBodyBytes) bytes at most.")
    }

    func bodyArrived(_ message: UInt, _ bytes: [UInt8]) {
        guard let exchange = exchanges[message] else { return }
        if case .reading = exchange.phase {
            if exchange.body.count + bytes.count <= configuration.maximumBodyBytes {
                exchange.body += bytes
                return
            }
            exchange.body = []
            exchange.phase = .refused(bodyTooLarge)
        }
        exchange.discarded += bytes.count
        if exchange.discarded > Self.patienceBytes, let socket = exchange.message.socket {
            g_socket_shutdown(socket, 1, 1, nil)
        }
    }

    func requestIsComplete(_ message: SoupMessage) {
        guard let exchange = exchanges[message.key] else { return }
        switch exchange.phase {
        case .refused(let refusal): answer(exchange, configuration.refuse(refusal))
        case .reading: dispatch(exchange)
        case .waiting, .upgrading, .answered: break
        }
    }

    private func dispatch(_ exchange: Exchange) {
        guard let request = exchange.head.request(body: exchange.body) else {
            let refusal = HTTPRefusal(status: 400, code: "bad_target", detail: "The path or query is not well-formed.")
            return answer(exchange, configuration.refuse(refusal))
        }
        exchange.body = []
        // A plain request to a WebSocket's path is the handler's: it can say why an upgrade would be refused, which browsers
        // hide from pages.
        for (pattern, route) in webSocketRoutes where exchange.head.asksForWebSocket {
            guard let parameters = pattern.match(request.segments) else { continue }
            var request = request
            request.parameters = parameters
            return considerUpgrade(exchange, request, route)
        }
        let id = exchange.id
        let key = exchange.message.key
        run(exchange) { [handler] listener in
            let response = await handler(request)
            await listener.handlerAnswered(key, id, response)
        }
    }

    /// Pauses the message and starts `work`, which answers it.
    func run(_ exchange: Exchange, _ work: @escaping @Sendable (HTTPListener) async -> Void) {
        soup_server_message_pause(exchange.message.pointer)
        exchange.phase = .waiting(Task.detached { [self] in await work(self) })
    }

    func handlerAnswered(_ message: UInt, _ id: UInt64, _ response: HTTPResponse) {
        // A handler that was given up, or whose client is gone, has nobody to answer.
        guard let exchange = exchanges[message], exchange.id == id, case .waiting = exchange.phase else { return }
        answer(exchange, response)
    }

    /// Writes the response and lets the message go on if it waits.
    func answer(_ exchange: Exchange, _ response: HTTPResponse) {
        let wasWaiting = if case .waiting = exchange.phase { true } else { false }
        exchange.timer?.cancel()
        exchange.timer = nil
        exchange.phase = .answered
        exchange.message.write(response)
        counters.change { $0.responses[min(5, max(0, response.status / 100))] += 1 }
        if wasWaiting { soup_server_message_unpause(exchange.message.pointer) }
    }

    private func startTimer(_ exchange: Exchange) {
        let id = exchange.id
        let key = exchange.message.key
        exchange.timer = GLibSource(every: configuration.requestTimeout, on: loop) { [weak self] in
            self?.assumeIsolated { $0.timedOut(key, id) }
            return false
        }
    }

    private func timedOut(_ message: UInt, _ id: UInt64) {
        guard let exchange = exchanges[message], exchange.id == id else { return }
        counters.change { $0.requestTimeouts += 1 }
        if case .waiting(let task) = exchange.phase {
            task.cancel()
            logger.warning("a handler did not answer in time", ["method": .text(exchange.head.method.rawValue)])
            let refusal = HTTPRefusal(status: 504, code: "timeout", detail: "The request took too long.")
            answer(exchange, configuration.refuse(refusal))
        } else if let socket = exchange.message.socket {
            g_socket_shutdown(socket, 1, 1, nil)
        }
    }

    func messageFinished(_ message: UInt) {
        guard let exchange = exchanges.removeValue(forKey: message) else { return }
        exchange.timer?.cancel()
        if case .waiting(let task) = exchange.phase { task.cancel() }
        counters.change { $0.requestsInWork -= 1 }
        endDrainIfDone()
    }
}

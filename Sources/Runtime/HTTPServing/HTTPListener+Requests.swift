import Logging
import NetworkIO
import Primitives

/// The path of a request: head, admission, body, handler, response.
extension HTTPListener {
    /// How much a refused client may still send before it is cut off: enough for it to notice the response.
    private static let patienceBytes = 16 << 20
    /// Bodies up to this size are sent together with their head.
    private static let joinedBytes = 16 << 10

    /// The loop found a connection's socket ready.
    func serve(_ connection: HTTPConnection, _ event: ReadinessSet.Ready) {
        if connection.stream.hasOutput {
            continueWriting(connection)
            // Requests that arrived after the one whose response has been sent now.
            advance(connection)
        }
        // TLS may read when its socket becomes writable.
        if event.interest.contains(.readable) || connection.stream.isSecure {
            if connection.wantsInput { readRequests(connection) } else { connection.hasUnwantedInput = true }
        }
        if event.isBroken, !connection.wantsInput { end(connection) }
        watch(connection)
    }

    /// Watches the socket for events that are useful now.
    func watch(_ connection: HTTPConnection) {
        if connection.wantsInput { connection.hasUnwantedInput = false }
        guard connections[connection.id] != nil,
            let interest = connection.stream.changeInterest(reads: !connection.hasUnwantedInput)
        else { return }
        readiness.change(connection.stream.socket.descriptor, interest, mark: connection.id)
    }

    /// Reads the available bytes, within a turn's share, and processes them as far as possible.
    func readRequests(_ connection: HTTPConnection) {
        var reads = 0
        while connection.wantsInput, reads < HTTPConnection.readsPerTurn || connection.stream.hasPendingInput {
            reads += 1
            if case .webSocket(let session) = connection.phase { return readWebSocket(connection, session) }
            let outcome = connection.fill()
            if connection.stream.isSecure, !connection.stream.isInHandshake { handshakes.leave(connection.id) }
            switch outcome {
            case .bytes: advance(connection)
            case .blocked: return watch(connection)
            case .ended: return end(connection)
            }
        }
        watch(connection)
    }

    /// Processes the bytes that were read, until they end or a handler has a request.
    func advance(_ connection: HTTPConnection) {
        while true {
            switch connection.phase {
            case .waiting, .head: guard advanceHead(connection) else { return }
            case .body: guard advanceBody(connection) else { return }
            case .lingering:
                connection.discarded += connection.reader.discard()
                if connection.discarded > Self.patienceBytes { end(connection) }
                return
            case .queued, .handling, .answering, .streaming, .webSocket, .ended: return
            }
        }
    }

    private func advanceHead(_ connection: HTTPConnection) -> Bool {
        switch connection.reader.nextHead() {
        case .incomplete(let hasBegun):
            guard hasBegun, case .waiting = connection.phase else { return false }
            connection.phase = .head
            enterWaiting(connection)
            if connection.requests > 0 { schedule(connection, now + configuration.headTimeout) }
            return false
        case .refused(let refusal):
            beginWork(connection)
            connection.request = refusedRequest(connection)
            refuse(connection, refusal)
        case .complete(let head):
            beginWork(connection)
            connection.isPersistent = head.isPersistent
            begin(connection, head)
        }
        return true
    }

    /// From now on the connection waits for its client, and is closed for others after all that have waited longer.
    private func enterWaiting(_ connection: HTTPConnection) {
        waiting.enter(connection.id, HTTPConnection.key(of: connection.address))
    }

    private func beginWork(_ connection: HTTPConnection) {
        waiting.leave(connection.id)
        connection.requests += 1
        connection.isPersistent = false
        connection.since = now
        counters.change { $0.requestsInWork += 1 }
    }

    /// Acts on the head: refuses the request, upgrades, admits its body, or handles it.
    private func begin(_ connection: HTTPConnection, _ head: HTTPRequestHead) {
        guard var request = request(connection, head) else {
            connection.request = withoutTarget(connection, head.headers)
            return refuse(connection, Self.badTarget)
        }
        if head.body == .none { request.webSocketRefusal = webSocketRefusal(of: connection) }
        connection.request = request
        if configuration.servesLoopbackOnly && !request.isLoopback { return refuse(connection, Self.loopbackOnly) }
        if head.body != .none {
            switch admission(request) {
            case .refuse(let response): return answer(connection, response, closes: true)
            case .admit(let isKnown): connection.isKnown = isKnown
            }
        }
        // A plain request on a WebSocket's path goes to the handler: it can report why an upgrade would be refused, which browsers
        // hide from pages.
        if head.asksForWebSocket, let (route, parameters) = webSocketRoute(request), head.body == .none {
            return considerUpgrade(connection, route, parameters)
        }
        guard head.body != .none else { return handle(connection) }
        connection.phase = .body
        if head.expectsContinue, !connection.reader.hasBytes {
            connection.stream.queue(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            continueWriting(connection)
        }
    }

    private func advanceBody(_ connection: HTTPConnection) -> Bool {
        switch connection.reader.nextBody() {
        case .complete(let body):
            bodies.leave(connection.id)
            connection.request?.body = body
            handle(connection)
        case .refused(let refusal): refuse(connection, refusal)
        case .incomplete:
            if !bodies.contains(connection.id) { enterBodies(connection) }
            let earned = Int64(connection.reader.bodyBytesReceived / configuration.minimumBytesPerSecond)
            let limit = min(configuration.graceTime + .seconds(earned), configuration.bodyTimeout)
            schedule(connection, connection.since + limit)
            return false
        }
        return true
    }

    /// Counts one more unfinished body; those beyond the limits are aborted.
    private func enterBodies(_ connection: HTTPConnection) {
        for (id, limit) in bodies.enter(connection.id, of: connection.client, isKnown: connection.isKnown) {
            reached(limit, "too many unfinished request bodies; the oldest one is aborted")
            guard let other = connections[id] else { continue }
            counters.change { $0.overloads += 1 }
            refuse(other, Self.tooSlow)
            watch(other)
        }
    }

    /// Processes what the client has sent meanwhile.
    func proceed(_ connection: HTTPConnection) {
        advance(connection)
        if connection.wantsInput { readRequests(connection) } else { watch(connection) }
    }

    /// Sends the server's own refusal of a request; its connection ends if the beginning of the next request cannot be known.
    func refuse(_ connection: HTTPConnection, _ refusal: HTTPRefusal) {
        if refusal.code == "malformed_request" { counters.change { $0.malformedRequests += 1 } }
        answer(connection, response(to: connection, refusal), closes: true)
    }

    /// The response by which the server itself refuses a connection's request.
    func response(to connection: HTTPConnection, _ refusal: HTTPRefusal) -> HTTPResponse {
        var response = configuration.refuse(refusal)
        if let request = connection.request { configuration.finish(request, &response) }
        return response
    }

    /// Writes the response to the request in progress.
    func answer(_ connection: HTTPConnection, _ response: HTTPResponse, closes: Bool = false) {
        bodies.leave(connection.id)
        slots.giveUp(connection.id)
        if let stream = response.stream, connection.request?.method != .head {
            return begin(stream, of: response, on: connection)
        }
        let isLast = connection.requests >= configuration.maximumRequestsPerConnection
        let closes = closes || isLast || isDraining || !connection.isPersistent
        let head = encoder.head(of: response, closes: closes, wallMilliseconds: MonotonicClock.wallMilliseconds())
        let hasBody = connection.request?.method != .head && HTTPResponseEncoder.mayHaveBody(response.status)
        let body = hasBody ? response.body : []
        if body.count <= Self.joinedBytes {
            connection.stream.queue(head + body)
        } else {
            connection.stream.queue(head)
            connection.stream.queue(body)
        }
        connection.request = nil
        connection.since = now + .seconds(Int64(body.count / configuration.minimumBytesPerSecond))
        counters.change { $0.count(response) }
        connection.phase = .answering(closes: closes)
        continueWriting(connection)
    }

    func continueWriting(_ connection: HTTPConnection) {
        if case .webSocket(let session) = connection.phase { return writeWebSocket(connection, session) }
        switch connection.stream.flush() {
        case .ended: end(connection)
        case .blocked:
            guard case .answering = connection.phase else { return }
            // A client that does not read counts as idle: it makes room for those that do.
            if !waiting.contains(connection.id) { enterWaiting(connection) }
            let limit = connection.since + configuration.graceTime
            schedule(connection, min(now + configuration.stallTimeout, limit))
        case .bytes:
            switch connection.phase {
            case .answering(let closes): responseHasLeft(connection, closes: closes)
            case .streaming(let stream): stream.proceed()
            default: return
            }
        }
    }

    private func responseHasLeft(_ connection: HTTPConnection, closes: Bool) {
        counters.change { $0.requestsInWork -= 1 }
        enterWaiting(connection)
        if closes {
            connection.stream.finishWriting()
            connection.phase = .lingering
            schedule(connection, now + configuration.lingerTimeout)
        } else {
            connection.phase = .waiting
            schedule(connection, now + configuration.idleLimit)
        }
    }

    /// A connection has timed out.
    func expire(_ connection: HTTPConnection) {
        // Bytes in the socket arrived in time: the process may have been stopped, and a turn reads a limited number of sockets.
        if connection.wantsInput {
            readRequests(connection)
            guard connection.timeout.isOver(at: now) else { return }
        }
        switch connection.phase {
        case .waiting:
            if connection.requests == 0 { counters.change { $0.requestTimeouts += 1 } }
            end(connection)
        case .head:
            gaveUp(.headTime, "a request timed out: its head arrived too slowly")
            beginWork(connection)
            connection.request = refusedRequest(connection)
            refuse(connection, Self.tooSlow)
        case .body:
            gaveUp(.bodyTime, "a request timed out: its body arrived too slowly")
            refuse(connection, Self.tooSlow)
        case .queued:
            reached(.requests, "a request timed out in the queue")
            overload(connection)
        case .handling(let number, let task):
            giveUp(number, task)
            gaveUp(.handlerTime, "a request timed out: its handler did not answer")
            refuse(connection, Self.timeout)
        case .answering:
            reached(.responseTime, "a connection is closed: the client reads its response too slowly")
            end(connection)
        case .streaming(let stream): keepAlive(stream, of: connection)
        case .lingering, .webSocket, .ended: end(connection)
        }
        proceed(connection)
    }

    private func gaveUp(_ limit: HTTPLimit, _ detail: @autoclosure () -> String) {
        counters.change { $0.requestTimeouts += 1 }
        reached(limit, detail())
    }
}

extension HTTPListener {
    fileprivate static let badTarget = HTTPRefusal(
        status: 400, code: "bad_target", detail: "The path or query is malformed.")
    fileprivate static let loopbackOnly = HTTPRefusal(
        status: 403, code: "loopback_only",
        detail: "Without TLS or a trusted proxy, the server accepts only clients on its own machine.")
    fileprivate static let tooSlow = HTTPRefusal(
        status: 408, code: "request_timeout", detail: "The request arrived too slowly.")
    fileprivate static let timeout = HTTPRefusal(
        status: 504, code: "timeout", detail: "The request took too long.")

    /// The request of a head, without its body; nil if the target is invalid. Fields from a proxy count only if it is trusted.
    fileprivate func request(_ connection: HTTPConnection, _ head: HTTPRequestHead) -> HTTPRequest? {
        // The last entry is the one that the proxy in front wrote; those before it come from the client.
        func forwarded(_ name: String) -> String? {
            guard configuration.trustsForwardedFields, let value = head.headers.values(name).last else { return nil }
            let last = value.split(separator: ",").last.map { trimmed(String($0)) }
            return last.flatMap { $0.isEmpty ? nil : $0 }
        }
        var address = connection.address
        var remote = address.host
        if let named = forwarded("X-Forwarded-For") {
            // Some load balancers add the client's port, which differs for each connection.
            let client = SocketAddress(numericWithPort: named)
            remote = client?.host ?? named
            address = client ?? address
            connection.client = HTTPConnection.key(of: address)
        }
        let isSecure = connection.stream.isSecure || forwarded("X-Forwarded-Proto")?.lowercased() == "https"
        return HTTPRequest(
            method: head.method, target: head.target, headers: head.headers, remoteAddress: remote,
            isLoopback: remote.hasPrefix("127.") || remote == "::1", scheme: isSecure ? "https" : "http",
            authority: forwarded("X-Forwarded-Host") ?? head.authority)
    }

    /// What is known of a request whose head is refused, to format the refusal.
    fileprivate func refusedRequest(_ connection: HTTPConnection) -> HTTPRequest? {
        if let head = connection.reader.refusedHead {
            return request(connection, head) ?? withoutTarget(connection, head.headers)
        }
        var unread = withoutTarget(connection, connection.reader.readableFields)
        unread?.isUnread = true
        return unread
    }

    /// A request of which only header fields are known.
    fileprivate func withoutTarget(_ connection: HTTPConnection, _ headers: HTTPHeaders) -> HTTPRequest? {
        HTTPRequest(
            method: .get, target: "/", headers: headers, remoteAddress: connection.address.host, isLoopback: false)
    }

    fileprivate func webSocketRoute(_ request: HTTPRequest) -> (WebSocketRoute, [String: String])? {
        for (pattern, route) in webSocketRoutes {
            if let parameters = pattern.match(request.segments) { return (route, parameters) }
        }
        return nil
    }
}

import Primitives

/// Work on a request, outside of the HTTP thread: what to answer, or what to speak from then on.
typealias HTTPWork = @Sendable () async -> (response: HTTPResponse?, upgrade: WebSocketUpgrade?)

/// Which requests handlers work on, and which wait for their turn.
///
/// A handler takes microseconds to milliseconds, so a request waits rather than that it is refused: a page that asks for a hundred things at once, or a
/// neighbour that does, keeps nobody out. Who waits because its own address has its share waits apart from the others.
extension HTTPListener {
    /// A request with a larger body does not wait: what waits must not add up.
    private static let waitingBodyBytes = 64 << 10

    /// Hands a complete request to the handler.
    func handle(_ connection: HTTPConnection) {
        guard let request = connection.request else { return }
        work(connection) { [handler] in (await handler(request), nil) }
    }

    /// Starts `work`, which answers the request or upgrades its connection, when its turn has come.
    func work(_ connection: HTTPConnection, _ work: @escaping HTTPWork) {
        let isOwnFull = handlers.isFull(for: connection.client)
        guard handlers.isFull || isOwnFull else { return start(connection, work) }
        reached(isOwnFull ? .addressRequests : .requests, "too many requests are in work; more wait for their turn")
        if connection.request?.body.count ?? 0 > Self.waitingBodyBytes { return overload(connection) }
        connection.phase = .queued(work)
        if isOwnFull {
            queuedByAddress.enter(connection.id, connection.client)
        } else {
            queued.enter(connection.id, connection.client)
        }
        schedule(connection, now + configuration.queueTimeout)
    }

    private func start(_ connection: HTTPConnection, _ work: @escaping HTTPWork) {
        handlers.enter(connection.id, connection.client)
        let (id, number) = (connection.id, connection.requests)
        connection.phase = .handling(
            Task.detached { [self] in
                let (response, upgrade) = await work()
                await finish(id, number, response, upgrade)
            })
        schedule(connection, now + configuration.requestTimeout)
    }

    private func finish(_ id: UInt64, _ number: Int, _ response: HTTPResponse?, _ upgrade: WebSocketUpgrade?) {
        // A handler that was given up, or whose client is gone, has nobody to answer.
        guard let connection = connections[id], connection.requests == number, case .handling = connection.phase
        else { return }
        if let upgrade { self.upgrade(connection, upgrade) }
        if let response { answer(connection, response) }
        leaveHandlers(connection)
        proceed(connection)
    }

    /// Takes a connection from those that are worked on or wait for it, and starts whoever comes next.
    func leaveHandlers(_ connection: HTTPConnection) {
        queued.leave(connection.id)
        queuedByAddress.leave(connection.id)
        guard handlers.contains(connection.id) else { return }
        handlers.leave(connection.id)
        if let next = queuedByAddress.oldest(of: connection.client) {
            queuedByAddress.leave(next)
            queued.enter(next, connection.client)
        }
        while !handlers.isFull, let next = queued.oldest(), let other = connections[next] {
            queued.leave(next)
            if handlers.isFull(for: other.client) {
                queuedByAddress.enter(next, other.client)
            } else if case .queued(let work) = other.phase {
                start(other, work)
            }
        }
    }

    /// Answers that there is too much to do.
    func overload(_ connection: HTTPConnection) {
        counters.change { $0.overloads += 1 }
        var response = configuration.refuse(
            HTTPRefusal(status: 503, code: "overloaded", detail: "Too many requests are in work; try again."))
        response.headers["Retry-After"] = "1"
        answer(connection, response)
    }
}

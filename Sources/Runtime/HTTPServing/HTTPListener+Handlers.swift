import Primitives

/// Work on a request, outside the HTTP thread; returns the response or an upgrade.
typealias HTTPWork = @Sendable () async -> (response: HTTPResponse?, upgrade: WebSocketUpgrade?)

/// A request on its way through its handler.
extension HTTPListener {
    /// Passes a complete request to the handler.
    func handle(_ connection: HTTPConnection) {
        guard let request = connection.request else { return }
        work(connection) { [handler] in (await handler(request), nil) }
    }

    /// Starts `work`, which answers the request or upgrades its connection, when its turn comes.
    func work(_ connection: HTTPConnection, _ work: @escaping HTTPWork) {
        guard let bound = slots.bound(for: connection.client) else { return start(connection, work) }
        reached(bound, "too many requests in progress; further requests are queued")
        let size = connection.request?.body.count ?? 0
        guard slots.wait(connection.id, of: connection.client, size: size) else { return overload(connection) }
        connection.phase = .queued(work)
        schedule(connection, now + configuration.queueTimeout)
    }

    private func start(_ connection: HTTPConnection, _ work: @escaping HTTPWork) {
        let (id, number) = (connection.id, newNumber())
        slots.begin(number, of: connection.client)
        connection.phase = .handling(
            number,
            Task.detached { [self] in
                let (response, upgrade) = await work()
                await finish(number, for: id, response, upgrade)
            })
        schedule(connection, now + configuration.requestTimeout)
    }

    private func finish(
        _ number: UInt64, for id: UInt64, _ response: HTTPResponse?, _ upgrade: WebSocketUpgrade?
    ) {
        endWork(number)
        // Nothing waits for a handler that was abandoned, or whose client has disconnected.
        guard let connection = connections[id], case .handling(number, _) = connection.phase else {
            upgrade?.abandon()
            return
        }
        if let upgrade { self.upgrade(connection, upgrade) }
        if let response { answer(connection, response) }
        proceed(connection)
    }

    /// Passes a handler's slot to the next request.
    private func endWork(_ number: UInt64) {
        slots.end(number)
        while let next = slots.next(), let connection = connections[next] {
            if case .queued(let work) = connection.phase { start(connection, work) }
        }
    }

    /// The client of this work disconnected, one request timeout ago: the handler is no longer awaited.
    func workIsLost(_ number: UInt64) { endWork(number) }

    /// Abandons a handler that has not responded.
    func giveUp(_ number: UInt64, _ task: Task<Void, Never>) {
        task.cancel()
        endWork(number)
    }

    /// Answers that the server is overloaded.
    ///
    /// A CORS preflight is answered with success: otherwise the page could not read the refusal of the request itself.
    func overload(_ connection: HTTPConnection) {
        if let request = connection.request, request.isPreflight {
            var response = HTTPResponse(status: 204, headers: ["Allow": HTTPMethod.all])
            configuration.finish(request, &response)
            return answer(connection, response)
        }
        counters.change { $0.overloads += 1 }
        var response = response(
            to: connection,
            HTTPRefusal(status: 503, code: "overloaded", detail: "Too many requests are in progress; try again."))
        response.headers["Retry-After"] = "1"
        answer(connection, response)
    }
}

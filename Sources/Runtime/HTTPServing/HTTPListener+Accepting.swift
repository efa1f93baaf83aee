import NetworkIO
import Primitives

/// Accepts connections, and decides which ones are closed for others.
extension HTTPListener {
    /// Uses another certificate and key for connections that are accepted from now on.
    func replaceCertificate(_ files: TLSFiles) throws(HTTPServerError) {
        if tls != nil { try use(files) }
    }

    /// Serves with this certificate and key from now on.
    func use(_ files: TLSFiles) throws(HTTPServerError) {
        let context = try TLSContext(files)
        counters.change { $0.certificateExpiry = context.expiresAt }
        tls = context
    }

    /// Connections accepted in one turn, before others get theirs.
    private static let acceptsPerTurn = 64
    /// Bytes that may wait unsent in the kernel: beyond that a socket counts as not writable, and what follows waits in our queues. Without it the kernel takes
    /// 3.9 MB for each client that does not read, and the loop copies them in one piece: 300 such clients kept others waiting for a second (measured).
    private static let unsentBytes = 64 << 10
    /// How soon accepting is tried again if the system has no descriptor and no connection could be closed.
    private static let pause = TimeSpan.milliseconds(500)

    func acceptSome() {
        for _ in 0..<Self.acceptsPerTurn {
            guard let listening else { return }
            switch listening.accept() {
            case .nothing: return
            case .connection(let socket, let address): open(socket, address)
            case .exhausted(let error):
                // Descriptors that were reserved for this listener are used elsewhere, or the system itself has none.
                reached(.descriptors, "cannot accept connections: \(error)")
                guard closeOldestWaiting() else { return pauseAccepting() }
            }
        }
    }

    private func pauseAccepting() {
        guard !isAcceptPaused, let listening else { return }
        isAcceptPaused = true
        readiness.change(listening.descriptor, [], mark: Mark.listening)
        deadlines.add(now + Self.pause, Mark.acceptAgain)
    }

    func resumeAccepting() {
        guard isAcceptPaused, let listening else { return }
        isAcceptPaused = false
        readiness.change(listening.descriptor, .readable, mark: Mark.listening)
    }

    private func open(_ socket: TCPSocket, _ address: SocketAddress) {
        let key = HTTPConnection.key(of: address)
        guard makeRoom(for: key) else {
            counters.change { $0.overloads += 1 }
            return
        }
        socket.limitUnsent(bytes: Self.unsentBytes)
        let stream = ByteStream(socket, tls?.session(on: socket))
        guard tls == nil || stream.isSecure else { return }
        let connection = HTTPConnection(
            id: newNumber(), address: address, stream: stream,
            limits: HTTPRequestReader.Limits(
                targetBytes: configuration.maximumTargetBytes, headerBytes: configuration.maximumHeaderBytes,
                bodyBytes: configuration.maximumBodyBytes))
        do throws(SystemError) {
            try readiness.add(socket.descriptor, .readable, mark: connection.id)
        } catch {
            return reached(.descriptors, "cannot add a connection to the epoll set: \(error)")
        }
        connections[connection.id] = connection
        counters.change {
            $0.connections += 1
            $0.connectionsAccepted += 1
        }
        plain.enter(connection.id, key)
        if stream.isSecure { enterHandshakes(connection, key) }
        waiting.enter(connection.id, key)
        schedule(connection, now + configuration.headTimeout)
        // A client that has connected has usually sent its request: it need not wait for the next turn.
        if tls == nil { readRequests(connection) }
    }

    /// Counts one more handshake; an honest client completes its own after two round trips.
    private func enterHandshakes(_ connection: HTTPConnection, _ key: UInt64) {
        if handshakes.isFull, let oldest = handshakes.oldest(), let other = connections[oldest] {
            reached(.handshakes, "too many unfinished TLS handshakes; the oldest one is closed")
            end(other)
        }
        handshakes.enter(connection.id, key)
    }

    /// Whether one more connection of an address may be open; closes the one that has waited the longest if there are too many. A client that
    /// sends its request when it is connected waits for one round trip; one that only occupies a connection waits longer.
    private func makeRoom(for address: UInt64) -> Bool {
        if plain.isFull(for: address) {
            guard let oldest = waiting.oldest(of: address), let connection = connections[oldest] else {
                reached(
                    .addressConnections,
                    "connection limit of a client address reached, and none is idle; a new one is refused")
                return false
            }
            reached(
                .addressConnections,
                "connection limit of a client address reached; its oldest idle connection is closed")
            end(connection)
        }
        guard connections.count >= configuration.maximumConnections else { return true }
        guard closeOldestWaiting() else {
            reached(.connections, "connection limit reached, and no connection is idle; a new one is refused")
            return false
        }
        reached(.connections, "connection limit reached; the oldest idle connection is closed")
        return true
    }

    private func closeOldestWaiting() -> Bool {
        guard let oldest = waiting.oldest(), let connection = connections[oldest] else { return false }
        end(connection)
        return true
    }

    /// Ends a connection in whatever phase it is, and closes its socket.
    func end(_ connection: HTTPConnection) {
        guard connections.removeValue(forKey: connection.id) != nil else { return }
        if connection.isInWork { counters.change { $0.requestsInWork -= 1 } }
        switch connection.phase {
        case .queued: slots.giveUp(connection.id)
        case .handling(let work, let task):
            task.cancel()
            deadlines.add(now + configuration.requestTimeout, work)
        case .webSocket(let session): endWebSocket(connection, session)
        case .streaming(let stream): end(stream)
        default: break
        }
        connection.phase = .ended
        plain.leave(connection.id)
        waiting.leave(connection.id)
        bodies.leave(connection.id)
        handshakes.leave(connection.id)
        counters.change { $0.connections -= 1 }
        connection.stream.close()
        resumeAccepting()
        endDrainIfDone()
    }
}

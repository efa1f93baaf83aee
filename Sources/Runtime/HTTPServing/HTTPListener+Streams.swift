import NetworkIO
import Primitives

/// The way of a body that goes on.
extension HTTPListener {
    /// Sends the head of `response` and from then on what its stream brings.
    func begin(_ stream: HTTPStream, of response: HTTPResponse, on connection: HTTPConnection) {
        guard streams < configuration.streamLimit else {
            reached(.streams, "too many responses that go on; a further one is refused")
            return overload(connection)
        }
        // Whoever has a link to a file may download it as often as they like: they take no more than half from those who follow events.
        guard stream.length == nil || downloads < max(1, configuration.streamLimit / 2) else {
            reached(.streams, "too many downloads; a further one is refused")
            return overload(connection)
        }
        streams += 1
        if stream.length != nil { downloads += 1 }
        counters.change {
            $0.streams += 1
            $0.count(response)
        }
        connection.request = nil
        let open = OpenStream(stream)
        connection.phase = .streaming(open)
        send(
            encoder.head(of: response, closes: true, wallMilliseconds: MonotonicClock.wallMilliseconds()),
            on: connection)
        let (id, pieces) = (connection.id, stream.pieces)
        open.begin(
            Task.detached { [self] in
                for await piece in pieces {
                    guard await send(piece, onStream: id) else { return }
                }
                await finishStream(id)
            })
    }

    /// Sends a piece and waits while the client is behind; whether the stream goes on.
    private func send(_ piece: [UInt8], onStream id: UInt64) async -> Bool {
        guard let connection = connections[id], case .streaming(let stream) = connection.phase else { return false }
        send(piece, on: connection)
        guard connections[id] != nil else { return false }
        guard connection.stream.hasOutput else { return true }
        return await withCheckedContinuation { stream.wait($0) }
    }

    private func send(_ piece: [UInt8], on connection: HTTPConnection) {
        connection.stream.queue(piece)
        continueWriting(connection)
        schedule(connection, now + configuration.streamKeepAlive)
        watch(connection)
    }

    private func finishStream(_ id: UInt64) {
        guard let connection = connections[id], case .streaming(let stream) = connection.phase else { return }
        finish(stream, of: connection)
    }

    /// Ends the body: what was sent of it still leaves.
    func finish(_ stream: OpenStream, of connection: HTTPConnection) {
        end(stream)
        connection.since = now
        connection.phase = .answering(closes: true)
        continueWriting(connection)
        watch(connection)
    }

    /// Nothing further comes of it.
    func end(_ stream: OpenStream) {
        stream.end()
        streams -= 1
        if stream.isDownload { downloads -= 1 }
        counters.change { $0.streams -= 1 }
    }

    /// A sign of life, or the end of a client that has not read the one before.
    func keepAlive(_ stream: OpenStream, of connection: HTTPConnection) {
        guard !connection.stream.hasOutput else {
            reached(.responseTime, "a connection is closed: the client reads its response too slowly")
            return end(connection)
        }
        send(stream.keepAlive, on: connection)
    }
}

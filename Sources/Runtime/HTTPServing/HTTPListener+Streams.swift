import NetworkIO
import Primitives

/// Streamed response bodies.
extension HTTPListener {
    /// Sends the head of `response`, and then the pieces of its stream.
    func begin(_ stream: HTTPStream, of response: HTTPResponse, on connection: HTTPConnection) {
        guard streams < configuration.streamLimit else {
            reached(.streams, "too many responses that go on; a further one is refused")
            return overload(connection)
        }
        // Everybody with a link to a file may download it as often as they like: downloads get at most half of the streams.
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

    /// Sends a piece and waits while the client is behind; returns whether the stream continues.
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

    /// Ends the body: queued pieces are still sent.
    func finish(_ stream: OpenStream, of connection: HTTPConnection) {
        end(stream)
        connection.since = now
        connection.phase = .answering(closes: true)
        continueWriting(connection)
        watch(connection)
    }

    /// Nothing more follows.
    func end(_ stream: OpenStream) {
        stream.end()
        streams -= 1
        if stream.isDownload { downloads -= 1 }
        counters.change { $0.streams -= 1 }
    }

    /// Sends a keep-alive, or ends the connection of a client that has not read the one before.
    func keepAlive(_ stream: OpenStream, of connection: HTTPConnection) {
        guard !connection.stream.hasOutput else {
            reached(.responseTime, "a connection is closed: the client reads its response too slowly")
            return end(connection)
        }
        send(stream.keepAlive, on: connection)
    }
}

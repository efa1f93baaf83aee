import NetworkIO

/// The bytes of one connection in both directions, with or without TLS, and its output queue. Belongs to the loop's thread.
final class ByteStream {
    let socket: TCPSocket
    private let tls: TLSSession?
    /// Queued pieces, and how much of the first was sent.
    private var output: [[UInt8]] = []
    private var written = 0
    private var isFinished = false
    /// What the loop watches the socket for.
    private(set) var interest: ReadinessSet.Interest = .readable

    init(_ socket: TCPSocket, _ tls: TLSSession?) {
        self.socket = socket
        self.tls = tls
    }

    /// Whether TLS protects it.
    var isSecure: Bool { tls != nil }
    /// Whether a TLS handshake is in progress.
    var isInHandshake: Bool { tls?.isInHandshake ?? false }
    /// Whether decrypted bytes are buffered, which the socket does not indicate.
    var hasPendingInput: Bool { tls?.hasPending ?? false }
    /// Whether bytes wait to be written.
    var hasOutput: Bool { !output.isEmpty }

    /// Reads the available bytes.
    func read(into bytes: UnsafeMutableRawBufferPointer) -> TCPSocket.Outcome {
        guard !isClosed else { return .ended }
        return tls?.read(into: bytes) ?? socket.read(into: bytes)
    }

    /// Queues a piece for writing.
    func queue(_ bytes: [UInt8]) {
        if !bytes.isEmpty { output.append(bytes) }
    }

    /// Writes the queue: `.bytes` when all of it was sent.
    func flush() -> TCPSocket.Outcome {
        guard !isClosed else { return .ended }
        while let piece = output.first {
            let outcome = piece.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                return tls?.write(rest) ?? socket.write(rest)
            }
            guard case .bytes(let count) = outcome else { return outcome }
            written += count
            if written == piece.count {
                output.removeFirst()
                written = 0
            }
        }
        return .bytes(0)
    }

    /// Signals the end of the stream to the other side.
    func finishWriting() {
        guard !isFinished, !isClosed else { return }
        isFinished = true
        tls?.finishWriting()
        socket.finishWriting()
    }

    /// Closes the socket; unsent bytes are lost.
    func close() {
        if !isFinished { tls?.finishWriting() }
        socket.close()
    }

    /// OpenSSL keeps the descriptor's number, which another socket may soon have.
    private var isClosed: Bool { socket.descriptor < 0 }

    /// The events to watch the socket for from now on, if they have changed; `reads`: whether more bytes can be used.
    func changeInterest(reads: Bool) -> ReadinessSet.Interest? {
        var wanted: ReadinessSet.Interest = reads ? .readable : []
        if hasOutput || tls?.needsWritable == true { wanted.insert(.writable) }
        guard wanted != interest else { return nil }
        interest = wanted
        return wanted
    }
}

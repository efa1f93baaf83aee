/// A streamed body: each chunk is sent as it becomes available, and the connection ends behind the last (RFC 9112 section 6.3), so that a proxy needs to know
/// no framing. Where its length is known, the client is told, and notices a body that ended early.
///
/// A client that does not read holds the pieces up, not the server's memory; one that reads nothing from one sign of life to the next is cut off.
public struct HTTPStream: Sendable {
    /// What the body is made of.
    public let pieces: any AsyncSequence<[UInt8], Never> & Sendable
    /// Bytes of all pieces together; nil where nobody knows.
    public let length: Int64?
    let keepAlive: [UInt8]

    /// A body of `pieces`, which have `length` bytes together. `keepAlive` is sent whenever there was nothing to send for the server's interval: bytes that
    /// mean nothing to its reader.
    public init(_ pieces: any AsyncSequence<[UInt8], Never> & Sendable, length: Int64? = nil, keepAlive: [UInt8]) {
        self.pieces = pieces
        self.length = length
        self.keepAlive = keepAlive
    }
}

/// A stream in progress. Belongs to the loop's thread.
final class OpenStream {
    let keepAlive: [UInt8]
    /// Its length is known.
    let isDownload: Bool
    private var task: Task<Void, Never>?
    private var waiter: CheckedContinuation<Bool, Never>?
    private var isOver = false

    init(_ stream: HTTPStream) { (keepAlive, isDownload) = (stream.keepAlive, stream.length != nil) }

    /// What takes the pieces from their source. Ends at once where the client was found gone while the head was sent.
    func begin(_ task: Task<Void, Never>) {
        if isOver { return task.cancel() }
        self.task = task
    }

    /// Waits until the client has read what was sent before; false when the stream is over.
    func wait(_ continuation: CheckedContinuation<Bool, Never>) {
        if isOver { return continuation.resume(returning: false) }
        waiter = continuation
    }

    /// The client has read everything.
    func proceed() {
        waiter?.resume(returning: true)
        waiter = nil
    }

    /// Nobody takes further pieces.
    func end() {
        isOver = true
        task?.cancel()
        task = nil
        waiter?.resume(returning: false)
        waiter = nil
    }
}

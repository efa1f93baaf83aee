/// A streamed body: each chunk is sent as it becomes available, and the connection ends after the last (RFC 9112 section 6.3), so that a proxy needs to know
/// no framing. If its length is known, it is sent to the client, which then notices a body that ended early.
///
/// A client that does not read makes the source wait, and fills no memory of the server; one that reads nothing between two keep-alives is cut off.
public struct HTTPStream: Sendable {
    /// The pieces of the body.
    public let pieces: any AsyncSequence<[UInt8], Never> & Sendable
    /// The total length of all pieces in bytes; nil if unknown.
    public let length: Int64?
    let keepAlive: [UInt8]

    /// A body of `pieces`, with `length` bytes together. `keepAlive` is sent whenever there was nothing to send for the server's interval: bytes that
    /// the reader ignores.
    public init(_ pieces: any AsyncSequence<[UInt8], Never> & Sendable, length: Int64? = nil, keepAlive: [UInt8]) {
        self.pieces = pieces
        self.length = length
        self.keepAlive = keepAlive
    }
}

/// A stream in progress. Belongs to the loop's thread.
final class OpenStream {
    let keepAlive: [UInt8]
    /// Whether its length is known.
    let isDownload: Bool
    private var task: Task<Void, Never>?
    private var waiter: CheckedContinuation<Bool, Never>?
    private var isOver = false

    init(_ stream: HTTPStream) { (keepAlive, isDownload) = (stream.keepAlive, stream.length != nil) }

    /// Keeps the task that reads the pieces from their source; cancels it at once if the client disconnected while the head was sent.
    func begin(_ task: Task<Void, Never>) {
        if isOver { return task.cancel() }
        self.task = task
    }

    /// Waits until the client has read what was sent before; false if the stream has ended.
    func wait(_ continuation: CheckedContinuation<Bool, Never>) {
        if isOver { return continuation.resume(returning: false) }
        waiter = continuation
    }

    /// The client has read everything.
    func proceed() {
        waiter?.resume(returning: true)
        waiter = nil
    }

    /// No further pieces are sent.
    func end() {
        isOver = true
        task?.cancel()
        task = nil
        waiter?.resume(returning: false)
        waiter = nil
    }
}

/// Splits the bytes of a connection into requests: a value that consumes bytes as they arrive and returns heads and bodies within their limits.
struct HTTPRequestReader: Sendable {
    /// Its limits.
    struct Limits: Sendable {
        var targetBytes: Int
        var headerBytes: Int
        var bodyBytes: Int
    }

    /// The state at the beginning of the unused bytes.
    enum Head: Equatable {
        /// A request that has not begun, or whose head is incomplete.
        case incomplete(hasBegun: Bool)
        case complete(HTTPRequestHead)
        case refused(HTTPRefusal)
    }

    /// The state of a body.
    enum Body: Equatable {
        case incomplete
        case complete([UInt8])
        case refused(HTTPRefusal)
    }

    private enum Framing {
        case none
        case length(Int)
        case chunked(ChunkedDecoder)
    }

    /// The length of method, version and blanks of a request line, without its target.
    private static let lineBytes = 64

    private let limits: Limits
    /// Bytes that arrived and have not been used yet.
    private var buffer: [UInt8] = []
    /// How far the buffer was searched for the end of the head, and where the current line begins.
    private var scanned = 0
    private var lineStart = 0
    private var requestLineBytes = 0
    private var skippedLine = false
    private var framing = Framing.none
    private var body: [UInt8] = []
    /// Bytes of the body that is being read, including the framing of chunks: its rate is measured by these.
    private(set) var bodyBytesReceived = 0
    /// A head that was refused although it can be parsed.
    private(set) var refusedHead: HTTPRequestHead?

    init(limits: Limits) { self.limits = limits }

    /// The fields of a head that is refused before it is complete, or because it cannot be parsed.
    var readableFields: HTTPHeaders { HTTPRequestHead.readableFields(buffer[...]) }

    /// Whether bytes wait that do not belong to a request yet.
    var hasBytes: Bool { !buffer.isEmpty }

    /// Adds bytes as they arrive.
    mutating func append(_ bytes: UnsafeRawBufferPointer) { buffer += bytes }

    /// Discards the bytes; returns how many.
    mutating func discard() -> Int { drainBuffer().count }

    /// Returns the bytes after the last head: after an upgrade they belong to another protocol.
    mutating func drainBuffer() -> [UInt8] {
        defer { buffer = [] }
        return buffer
    }

    /// The next head, once it is complete; it is removed, and its body is read next.
    mutating func nextHead() -> Head {
        // Section 2.2: one empty line before a request is tolerated.
        if !skippedLine, scanned == 0, buffer.first == 0x0d {
            guard buffer.count > 1 else { return .incomplete(hasBegun: false) }
            if buffer[1] == 0x0a {
                buffer.removeFirst(2)
                skippedLine = true
            }
        }
        guard let first = buffer.first else { return .incomplete(hasBegun: false) }
        guard HTTPRequestHead.isToken(first) || first == 0x0d else { return .refused(Self.noRequest) }
        switch scan() {
        case .failure(let refusal): return .refused(refusal)
        case .success(nil): return .incomplete(hasBegun: true)
        case .success(let end?): return head(endingAt: end)
        }
    }

    private static let noRequest = HTTPRequestHead.malformed("This is not an HTTP request.")

    /// Searches for the empty line; returns the index after it. Line ends are only CRLF, so that no two parsers see different lines.
    private mutating func scan() -> Result<Int?, HTTPRefusal> {
        while scanned < buffer.count {
            let byte = buffer[scanned]
            let followsReturn = scanned > 0 && buffer[scanned - 1] == 0x0d
            if followsReturn != (byte == 0x0a) {
                return .failure(HTTPRequestHead.malformed("Lines must end with CRLF; a CR or LF alone is not allowed."))
            }
            scanned += 1
            if byte == 0x0a {
                if scanned - lineStart == 2 { return .success(scanned) }
                if requestLineBytes == 0 { requestLineBytes = scanned }
                lineStart = scanned
            }
            if requestLineBytes == 0, scanned > limits.targetBytes + Self.lineBytes { return .failure(Self.longTarget) }
            if requestLineBytes > 0, scanned - requestLineBytes > limits.headerBytes + 2 {
                return .failure(
                    HTTPRefusal(status: 431, code: "headers_too_large", detail: "The header fields are too large."))
            }
        }
        return .success(nil)
    }

    private static let longTarget = HTTPRefusal(
        status: 414, code: "target_too_long", detail: "The path and query are too long.")

    private mutating func head(endingAt end: Int) -> Head {
        let lines = buffer[..<(end - 2)]
        do throws(HTTPRefusal) {
            let head = try HTTPRequestHead(lines: lines)
            buffer.removeFirst(end)
            if buffer.isEmpty { buffer = [] }
            (scanned, lineStart, requestLineBytes, bodyBytesReceived) = (0, 0, 0, 0)
            skippedLine = false
            refusedHead = head
            if head.target.utf8.count > limits.targetBytes { return .refused(Self.longTarget) }
            switch head.body {
            case .none: framing = .none
            case .length(let count) where count > limits.bodyBytes: return .refused(bodyTooLarge)
            case .length(let count): framing = .length(count)
            case .chunked: framing = .chunked(ChunkedDecoder())
            }
            refusedHead = nil
            return .complete(head)
        } catch {
            return .refused(error)
        }
    }

    private var bodyTooLarge: HTTPRefusal {
        HTTPRefusal(
            status: 413, code: "body_too_large", detail: "The body may have at most \(limits.bodyBytes) bytes.")
    }

    /// The body of the last head, once it is complete.
    mutating func nextBody() -> Body {
        var rest = buffer[...]
        defer {
            bodyBytesReceived += buffer.count - rest.count
            buffer = rest.isEmpty ? [] : Array(rest)
        }
        switch framing {
        case .none: break
        case .length(let count):
            let part = rest.prefix(count - body.count)
            body += part
            rest = rest.dropFirst(part.count)
            if body.count < count { return .incomplete }
        case .chunked(var decoder):
            let progress = decoder.read(&rest, into: &body)
            framing = .chunked(decoder)
            if body.count > limits.bodyBytes {
                body = []
                return .refused(bodyTooLarge)
            }
            switch progress {
            case .needsMore: return .incomplete
            case .broken: return .refused(HTTPRequestHead.malformed("The chunked body is malformed."))
            case .complete: break
            }
        }
        framing = .none
        defer { body = [] }
        return .complete(body)
    }
}

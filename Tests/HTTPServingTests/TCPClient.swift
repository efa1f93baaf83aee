import Dispatch
import Glibc
import Testing

/// A blocking TCP client whose calls run on a queue of their own, so that no test occupies a thread of the concurrency pool that a
/// handler needs. Every wait is bounded.
final class TCPClient: Sendable {
    struct Timeout: Error {}

    private let descriptor: Int32
    private let queue = DispatchQueue(label: "client")
    /// What was received and not yet used; touched on the queue only.
    nonisolated(unsafe) private var buffer: [UInt8] = []

    /// Connects to a port of this machine. A small receive buffer makes a slow reader of it.
    init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = try #require(Self.connected(port, receiveBuffer), "connects")
    }

    /// A connected socket whose waits are bounded; nil when nobody listens.
    static func connected(_ port: UInt16, _ receiveBuffer: Int32? = nil) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// Whether somebody listens on a port of this machine.
    static func isListening(_ port: UInt16) -> Bool {
        guard let descriptor = connected(port) else { return false }
        close(descriptor)
        return true
    }

    deinit { close(descriptor) }

    /// Breaks the connection at once: the server's next look at it finds a reset.
    func reset() {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        // To connect to nothing breaks a connection without giving its number back.
        var nothing = sockaddr()
        nothing.sa_family = sa_family_t(AF_UNSPEC)
        connect(descriptor, &nothing, socklen_t(MemoryLayout<sockaddr>.size))
    }

    private func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// Sends all bytes; false when the connection broke on the way.
    @discardableResult
    func send(_ bytes: [UInt8]) async throws -> Bool {
        try await run { [descriptor] in
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count <= 0 { return false }
                sent += count
            }
            return true
        }
    }

    @discardableResult
    func send(_ text: String) async throws -> Bool { try await send(Array(text.utf8)) }

    /// Takes bytes as `take` says: it looks at what is there and gives the number of bytes it uses, or nil for more.
    /// nil when the connection ended first.
    private func receive(_ take: @escaping @Sendable ([UInt8]) -> Int?) async throws -> [UInt8]? {
        try await run { [self] in
            while true {
                if let count = take(buffer) {
                    defer { buffer.removeFirst(count) }
                    return Array(buffer.prefix(count))
                }
                var chunk = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count < 0 && errno == EAGAIN { throw Timeout() }
                if count <= 0 { return nil }
                buffer += chunk.prefix(count)
            }
        }
    }

    /// Exactly `count` bytes; nil when the connection ended first.
    func bytes(_ count: Int) async throws -> [UInt8]? {
        try await receive { $0.count >= count ? count : nil }
    }

    /// Whether the server ends the connection; what still comes is dropped.
    func isEnded() async throws -> Bool {
        try await receive { _ in nil } == nil
    }

    /// Bytes up to and with the empty line.
    func head() async throws -> String? {
        let end = Array("\r\n\r\n".utf8)
        let bytes = try await receive { buffer in
            guard buffer.count >= 4 else { return nil }
            return (0...(buffer.count - 4)).first { Array(buffer[$0..<($0 + 4)]) == end }.map { $0 + 4 }
        }
        return bytes.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// A response as a client sees it.
struct Answer: Sendable {
    var status: Int
    var headers: [String: String]
    var body: String

    /// Reads one response; nil when the connection ended first.
    init?(from client: TCPClient, hasBody: Bool = true) async throws {
        guard let head = try await client.head() else { return nil }
        let lines = head.split(separator: "\r\n")
        try #require(lines[0].hasPrefix("HTTP/1.1 "), "nothing stands between responses")
        status = Int(lines[0].split(separator: " ")[1]) ?? 0
        headers = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        let length = hasBody ? Int(headers["content-length"] ?? "0") ?? 0 : 0
        guard let bytes = try await client.bytes(length) else { return nil }
        body = String(decoding: bytes, as: UTF8.self)
    }
}

extension TCPClient {
    /// One request on this connection and its response.
    func request(
        _ method: String, _ target: String, headers: [String: String] = [:], body: String = ""
    ) async throws -> Answer? {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: test\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if !body.isEmpty { text += "Content-Length: \(body.utf8.count)\r\n" }
        try await send(text + "\r\n" + body)
        return try await Answer(from: self, hasBody: method != "HEAD")
    }
}

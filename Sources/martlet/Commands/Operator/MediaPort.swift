import Glibc
import ICE
import NetworkIO
import Primitives

/// A media port from a server's answer, probed the way a client begins: with a connectivity check (RFC 8445 section 7.2.4).
struct MediaPort: Hashable {
    var isTCP: Bool
    var host: String
    var port: UInt16

    /// RFC 8489 section 6.2.1: requests over UDP are sent again; three are enough to find out whether the port answers at all.
    private static let attempts = 3
    private static let attemptMilliseconds: Int32 = 1_000
    private static let longestMessage = 1_500

    /// How long one attempt may take, and over TCP its connection. TCP retransmits by itself, so its single attempt has the time of all.
    private var patienceMilliseconds: Int32 { Self.attemptMilliseconds * Int32(isTCP ? Self.attempts : 1) }

    init(isTCP: Bool, host: String, port: UInt16) {
        (self.isTCP, self.host, self.port) = (isTCP, host, port)
    }

    /// An `a=candidate:` line's value (RFC 8839 section 5.1, RFC 6544 section 4.5); nil if it is another kind of candidate.
    init?(candidate: some StringProtocol) {
        let words = candidate.split(separator: " ")
        guard words.count >= 8, let port = UInt16(words[5]), words[1] == "1" else { return nil }
        switch words[2].lowercased() {
        case "udp": self.init(isTCP: false, host: String(words[4]), port: port)
        case "tcp" where words.suffix(2) == ["tcptype", "passive"]:
            self.init(isTCP: true, host: String(words[4]), port: port)
        default: return nil
        }
    }

    /// "udp 192.0.2.1:7900"
    var text: String { "\(isTCP ? "tcp" : "udp") \(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// How long the answer took, in milliseconds; nil without an authentic one.
    func ask(local: ICECredential, remote: ICECredential) -> Double? {
        let agent = STUNAgent(tieBreaker: 1)
        var batch = OutboundBatch(datagrams: 1, bytes: Self.longestMessage)
        // The destination is the socket's.
        let nowhere = SocketAddress(ipv4: 0, port: 0)
        guard
            let transaction = agent.sendCheck(
                to: nowhere, local: local, remote: remote, controlling: true, nominate: false, priority: 1, into: &batch
            ), let entry = batch.entries.first, let socket = connected()
        else { return nil }
        defer { close(socket) }
        var message = Array(batch.bytes(of: entry))
        // RFC 4571: over TCP, the length precedes each message.
        if isTCP { message = [UInt8(message.count >> 8), UInt8(message.count & 255)] + message }
        let started = MonotonicClock.now()
        for _ in 0..<(isTCP ? 1 : Self.attempts) {
            guard send(socket, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else {
                return nil
            }
            while let answer = received(from: socket) {
                let isAnswer = answer.withUnsafeBytes { bytes in
                    bytes.count >= 20 && TransactionID(of: bytes) == transaction
                        && agent.isAuthenticResponse(bytes, remote: remote)
                }
                if isAnswer { return Double((MonotonicClock.now() - started).nanoseconds) / 1_000_000 }
            }
        }
        return nil
    }

    /// A socket connected to the port; nil if there is no route, or nobody listens.
    private func connected() -> Int32? {
        let kind = Int32(isTCP ? SOCK_STREAM.rawValue : SOCK_DGRAM.rawValue)
        var hints = addrinfo()
        (hints.ai_flags, hints.ai_socktype) = (AI_NUMERICHOST | AI_NUMERICSERV, kind)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0, let place = list?.pointee else { return nil }
        defer { freeaddrinfo(list) }
        let socket = socket(place.ai_family, kind | Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return nil }
        var fault: Int32 = connect(socket, place.ai_addr, place.ai_addrlen) == 0 ? 0 : errno
        if fault == EINPROGRESS, isReady(socket, Int16(POLLOUT), patienceMilliseconds) {
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &length)
        }
        guard fault == 0 else {
            close(socket)
            return nil
        }
        return socket
    }

    private func isReady(_ socket: Int32, _ events: Int16, _ milliseconds: Int32) -> Bool {
        var one = pollfd(fd: socket, events: events, revents: 0)
        return poll(&one, 1, milliseconds) > 0
    }

    /// The next message; nil if none arrives in time, or the connection has ended.
    private func received(from socket: Int32) -> [UInt8]? {
        guard isTCP else { return next(Self.longestMessage, from: socket, isWhole: false) }
        guard let length = next(2, from: socket, isWhole: true) else { return nil }
        return next(Int(length[0]) << 8 | Int(length[1]), from: socket, isWhole: true)
    }

    private func next(_ count: Int, from socket: Int32, isWhole: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        repeat {
            guard isReady(socket, Int16(POLLIN), patienceMilliseconds) else { return nil }
            var piece = [UInt8](repeating: 0, count: count - bytes.count)
            let read = recv(socket, &piece, piece.count, 0)
            guard read > 0 else { return nil }
            bytes += piece.prefix(read)
        } while isWhole && bytes.count < count
        return bytes
    }
}

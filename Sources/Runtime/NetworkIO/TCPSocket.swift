import CLinux
import Glibc
public import Primitives

/// A non-blocking TCP socket, closed at the latest with its last reference.
///
/// Not Sendable: one loop owns it.
public final class TCPSocket {
    /// The result of a read or a write.
    public enum Outcome: Sendable, Hashable {
        /// This many bytes were transferred, at least one.
        case bytes(Int)
        /// Nothing can be transferred now; the socket becomes ready later.
        case blocked
        /// The other side has ended the stream, or the connection broke.
        case ended
    }

    /// The result of accepting on a listening socket.
    public enum Accepted {
        case connection(TCPSocket, from: SocketAddress)
        /// No connection is waiting.
        case nothing
        /// A connection is waiting, but the system has no descriptor or memory left for it.
        case exhausted(SystemError)
    }

    /// For a `ReadinessSet`; -1 if the socket is closed.
    public private(set) var descriptor: Int32

    /// The owner of a connected, non-blocking socket that `surrender` released.
    public init(descriptor: Int32) { self.descriptor = descriptor }

    /// Gives the descriptor to another owner, for example on another thread; after this, reading and writing report the end of the stream.
    public func surrender() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }

    deinit { close() }

    /// Closes the descriptor before the last reference ends; after this, reading and writing report the end of the stream.
    public func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }

    /// Listens on `address`; its port 0 lets the system choose. An IPv6 address of all zeros serves IPv4, too.
    public static func listening(at address: SocketAddress, backlog: Int32) throws(SystemError) -> TCPSocket {
        let isIPv6: Int32 = address.isIPv4 ? 0 : 1
        let descriptor = clinux_tcp_listen(isIPv6, address.high, address.low, address.port, backlog)
        guard descriptor >= 0 else { throw SystemError("bind") }
        return TCPSocket(descriptor: descriptor)
    }

    /// Listens on `port` of `address`; nil for any address, of both families if the machine has IPv6.
    public static func listening(
        to address: SocketAddress?, port: UInt16, backlog: Int32
    ) throws(SystemError) -> TCPSocket {
        let any = SocketAddress(high: 0, low: 0, port: port)
        let local = address.map { SocketAddress(high: $0.high, low: $0.low, port: port) }
        do throws(SystemError) {
            return try listening(at: local ?? any, backlog: backlog)
        } catch {
            guard local == nil, error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL else { throw error }
            return try listening(at: SocketAddress(ipv4: 0, port: port), backlog: backlog)
        }
    }

    /// The local port.
    public var port: UInt16 { UInt16(truncatingIfNeeded: max(0, clinux_bound_port(descriptor))) }

    /// The next connection of a listening socket.
    public func accept() -> Accepted {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var port: UInt16 = 0
        while true {
            let accepted = clinux_tcp_accept(descriptor, &high, &low, &port)
            if accepted >= 0 {
                return .connection(
                    TCPSocket(descriptor: accepted), from: SocketAddress(high: high, low: low, port: port))
            }
            switch errno {
            case EAGAIN: return .nothing
            // The connection ended before it was accepted, or an error that accept(2) says to treat like this: the next one may work.
            case ECONNABORTED, EINTR, EPERM, EPROTO, ENOPROTOOPT, EOPNOTSUPP, ENETDOWN, ENETUNREACH, EHOSTDOWN,
                EHOSTUNREACH, ENONET:
                continue
            default: return .exhausted(SystemError("accept"))
            }
        }
    }

    /// Reads the available bytes.
    public func read(into bytes: UnsafeMutableRawBufferPointer) -> Outcome {
        let count = recv(descriptor, bytes.baseAddress, bytes.count, 0)
        return Self.outcome(count)
    }

    /// Writes as much as fits.
    public func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return Self.outcome(count)
    }

    private static func outcome(_ count: Int) -> Outcome {
        if count > 0 { return .bytes(count) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? .blocked : .ended
    }

    /// Signals the other side that nothing more will come.
    public func finishWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes without sending what waits, so that a peer that reads nothing occupies no kernel memory.
    public func abort() {
        clinux_discard_on_close(descriptor)
        close()
    }

    /// Limits the kernel's memory for bytes that were sent but not acknowledged.
    public func setSendBuffer(bytes: Int) { _ = clinux_set_buffer(descriptor, 1, Int32(clamping: bytes)) }

    /// Lets at most this many bytes wait unsent in the kernel before the socket counts as not writable.
    public func limitUnsent(bytes: Int) { clinux_limit_unsent(descriptor, Int32(clamping: bytes)) }
}

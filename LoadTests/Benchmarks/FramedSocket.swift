import Glibc
import NetworkIO
import Primitives
import RTP

/// A client's TCP connection to a worker on this machine: datagrams in frames.
final class FramedSocket {
    private let socket: TCPSocket
    private var reader = FrameReader()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)

    /// Connects to a port of this machine.
    init(port: UInt16) {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(result == 0, "the worker listens")
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        socket = TCPSocket(descriptor: descriptor)
    }

    deinit { buffer.deallocate() }

    /// Sends every datagram of a batch.
    func send(_ batch: borrowing OutboundBatch) {
        for entry in batch.entries {
            let frame = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(entry.length + StreamFrame.headerLength)])
            StreamFrame.writeHeader(entry.length, into: frame)
            UnsafeMutableRawBufferPointer(rebasing: frame[StreamFrame.headerLength...])
                .copyMemory(from: UnsafeRawBufferPointer(batch.bytes(of: entry)))
            _ = socket.write(UnsafeRawBufferPointer(frame))
        }
    }

    /// Reads what has arrived; `consume` gets each datagram.
    func drain(_ consume: (UnsafeMutableRawBufferPointer) -> Void) {
        while case .bytes(let count) = socket.read(into: buffer) {
            let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            var position = 0
            while case .packet(let packet) = reader.next(in: bytes, from: &position) { consume(packet) }
        }
    }

    /// Reads what has arrived and ignores it.
    func discard() { while case .bytes = socket.read(into: buffer) {} }
}

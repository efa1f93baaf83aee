import Glibc
import NetworkIO
import Primitives

/// One socket for all receivers against a connected one for each, on the same port. These figures decided in favour of the single socket.
///
/// A connected socket saves the kernel's route lookup, and costs one system call per message and memory of its own that
/// is cold when its turn comes. Receivers drop what they get, so nothing is read during the measured time.
enum SocketBenchmarks {
    private static let receivers = 100

    static func run(_ runner: Runner) throws {
        // (datagrams to each receiver, their bytes): audio, and a video frame.
        for (count, size) in [(1, 160), (4, 1_100)] {
            let name = "send: \(count) x \(size) B to \(receivers)"
            guard runner.wants(name) else { continue }
            try send(runner, name, count, size)
        }
    }

    private static func send(_ runner: Runner, _ name: String, _ count: Int, _ size: Int) throws {
        var sinkConfiguration = UDPSocketConfiguration(address: SocketAddress(ipv4: 0, port: 0), port: 0)
        sinkConfiguration.receiveBufferBytes = 1
        let sink = try UDPSocket(sinkConfiguration)
        var one = try UDPSocket(UDPSocketConfiguration(address: SocketAddress(ipv4: 0x7f00_0001, port: 0), port: 0))
        var batch = OutboundBatch(datagrams: receivers * count, bytes: receivers * count * size)
        let datagram = [UInt8](repeating: 0x80, count: size)
        for index in 0..<receivers {
            let receiver = SocketAddress(ipv4: 0x7f01_0001 + UInt32(index), port: sink.port)
            for _ in 0..<count { datagram.withUnsafeBytes { _ = batch.append($0, to: receiver) } }
        }
        runner.time("\(name), one socket", operations: receivers * count) { one.send(batch) }
        let connected = (0..<receivers).map {
            connect(from: one.port, beside: one.descriptor, to: 0x7f01_0001 + UInt32($0), sink.port, segment: size)
        }
        defer { for descriptor in connected { close(descriptor) } }
        runner.time("\(name), a socket each", operations: receivers * count) {
            var start = batch.arena.baseAddress!
            for descriptor in connected {
                _ = Glibc.send(descriptor, start, count * size, Int32(MSG_DONTWAIT))
                start += count * size
            }
        }
    }

    /// A socket on `port` of 127.0.0.1 that sends only to `address`, in segments.
    private static func connect(
        from port: UInt16, beside first: Int32, to address: UInt32, _ remotePort: UInt16, segment: Int
    ) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var isOn: Int32 = 1, segment = Int32(segment)
        let length = socklen_t(MemoryLayout<Int32>.size)
        for each in [first, descriptor] { setsockopt(each, SOL_SOCKET, SO_REUSEPORT, &isOn, length) }
        // 103 is UDP_SEGMENT.
        setsockopt(descriptor, Int32(IPPROTO_UDP), 103, &segment, length)
        func named(_ address: UInt32, _ port: UInt16, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Bool {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = address.bigEndian
            return withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call($0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
        }
        let isReady =
            named(0x7f00_0001, port) { bind(descriptor, $0, $1) }
            && named(address, remotePort) { Glibc.connect(descriptor, $0, $1) }
        precondition(isReady, "no connected socket beside another one")
        return descriptor
    }
}

import CLinux
import Glibc
import Primitives
import Testing

@testable import NetworkIO

@Suite("DSCP of media")
struct TrafficClassTests {
    /// A socket that reports the octet with which each datagram came.
    private final class Receiver {
        let descriptor: Int32
        let port: UInt16

        init(isIPv6: Bool) throws {
            descriptor = clinux_udp_socket(isIPv6 ? 1 : 0, 0)
            try #require(clinux_bind(descriptor, isIPv6 ? 1 : 0, 0, isIPv6 ? 1 : 0xffff_7f00_0001, 0) == 0)
            port = UInt16(clinux_bound_port(descriptor))
            var on: Int32 = 1
            let (level, option) =
                isIPv6 ? (Int32(IPPROTO_IPV6), IPV6_RECVTCLASS) : (Int32(IPPROTO_IP), IP_RECVTOS)
            try #require(setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size)) == 0)
        }

        deinit { close(descriptor) }

        /// (length, octet) of the datagrams that wait.
        func all() -> [[Int]] {
            var found: [[Int]] = []
            var bytes = [UInt8](repeating: 0, count: 2_048), control = [UInt8](repeating: 0, count: 128)
            while true {
                let length = bytes.withUnsafeMutableBytes { bytes in
                    control.withUnsafeMutableBytes { control -> Int in
                        var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                        return withUnsafeMutablePointer(to: &vector) { vector in
                            var header = msghdr()
                            (header.msg_iov, header.msg_iovlen) = (vector, 1)
                            (header.msg_control, header.msg_controllen) = (control.baseAddress, control.count)
                            return recvmsg(descriptor, &header, Int32(MSG_DONTWAIT))
                        }
                    }
                }
                guard length >= 0 else { return found }
                // One control message: 16 bytes of header, then the octet, or an int that begins with it.
                found.append([length, Int(control[16])])
            }
        }
    }

    @Test(
        "Audio leaves as EF, video as AF41, segmented or single, and nothing else is marked", arguments: [false, true])
    func marked(_ isIPv6: Bool) throws {
        let receiver = try Receiver(isIPv6: isIPv6)
        var configuration = UDPSocketConfiguration(port: 0)
        configuration.marksMedia = true
        #expect(
            try send(from: configuration, to: receiver, isIPv6) == [
                [900, 136], [900, 136], [100, 184], [80, 0], [900, 136],
            ])
    }

    @Test("Switched off, no datagram is marked")
    func unmarked() throws {
        let receiver = try Receiver(isIPv6: false)
        #expect(try send(from: UDPSocketConfiguration(port: 0), to: receiver, false).allSatisfy { $0[1] == 0 })
    }

    private func send(from configuration: UDPSocketConfiguration, to receiver: Receiver, _ isIPv6: Bool)
        throws -> [[Int]]
    {
        var sender = try UDPSocket(configuration)
        var batch = OutboundBatch(datagrams: 16, bytes: 16_384)
        let destination =
            isIPv6
            ? SocketAddress(high: 0, low: 1, port: receiver.port)
            : SocketAddress(ipv4: 0x7f00_0001, port: receiver.port)
        let content: [(Int, OutboundBatch.Content)] = [
            (900, .video), (900, .video), (100, .audio), (80, .other), (900, .video),
        ]
        for (length, content) in content {
            _ = batch.reserve(length)
            batch.commit(length: length, to: destination, content: content)
        }
        sender.send(batch)
        return receiver.all()
    }
}

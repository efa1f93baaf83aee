import Primitives
import Testing

@testable import MediaWorkers

@Suite("Queue of waiting handshakes")
struct HandshakeQueueTests {
    private static let source = SocketAddress(ipv4: 0x7f00_0001, port: 9)

    private func push(_ bytes: [UInt8], _ queue: inout HandshakeQueue) -> Bool {
        var bytes = bytes
        return bytes.withUnsafeMutableBytes { queue.push($0, from: Self.source) }
    }

    @Test("The queue is first in, first out across the wrap; what does not fit is refused, and nothing is lost")
    func order() {
        var queue = HandshakeQueue()
        var pushed = 0, taken = 0
        for round in 0..<40 {
            for _ in 0..<(round % 9) * 9 where push([22, UInt8(pushed & 255), UInt8(pushed >> 8)], &queue) {
                pushed += 1
            }
            for _ in 0..<(round % 5) * 9 {
                guard let next = queue.next() else { break }
                #expect(next.source == Self.source)
                #expect(Int(next.datagram[1]) | Int(next.datagram[2]) << 8 == taken)
                taken += 1
            }
            #expect(queue.count == pushed - taken)
        }
        #expect(pushed > 500)
        while queue.next() != nil { taken += 1 }
        #expect(pushed == taken)
        for index in 0..<300 { #expect(push([22], &queue) == (index < 256)) }
        #expect(!push([UInt8](repeating: 22, count: 1_501), &queue))
    }

    @Test("The messages of data channels are no handshakes, and whose handshake waits is known until it is taken")
    func applicationData() {
        for first in UInt8.min...UInt8.max {
            var bytes = [first]
            let isData = bytes.withUnsafeMutableBytes { HandshakeQueue.isApplicationData($0) }
            #expect(isData == (first == 23))
        }
        var queue = HandshakeQueue()
        func holds(_ address: SocketAddress) -> Bool { queue.holds(address) }
        let other = SocketAddress(ipv4: 0x7f00_0001, port: 10)
        #expect(!holds(Self.source))
        #expect(push([22], &queue))
        #expect(holds(Self.source) && !holds(other))
        #expect(queue.next() != nil)
        #expect(!holds(Self.source))
    }

    @Test("RFC 7983: DTLS is recognized by its first byte")
    func firstByte() {
        for first in UInt8.min...UInt8.max {
            var bytes = [first]
            let isHandshake = bytes.withUnsafeMutableBytes { HandshakeQueue.isHandshake($0) }
            #expect(isHandshake == (20...63).contains(first))
        }
    }
}

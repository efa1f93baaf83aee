import Primitives
import Testing

@testable import ICE

@Suite("Address probe")
struct AddressProbeTests {
    private static let server = SocketAddress(ipv4: 0xc000_0203, port: 3_478)

    private static func sent(by probe: AddressProbe) -> [UInt8] {
        var batch = OutboundBatch(datagrams: 4, bytes: 4_096)
        let isSent = probe.send(into: &batch)
        #expect(isSent)
        #expect(batch.entries.first?.destination == server)
        return Array(batch.arena.prefix(batch.used))
    }

    /// A success response with XOR-MAPPED-ADDRESS 203.0.113.7:41000 (RFC 8489 section 14.2), and what stands before it.
    private static func answer(to request: [UInt8], type: [UInt8] = [1, 1], before: [UInt8] = []) -> [UInt8] {
        let port = UInt16(41_000) ^ 0x2112, address = UInt32(0xcb00_7107) ^ 0x2112_a442
        let mapped: [UInt8] =
            [0, 0x20, 0, 8, 0, 1, UInt8(port >> 8), UInt8(port & 255)]
            + (0..<4).map { UInt8(truncatingIfNeeded: address >> (24 - 8 * $0)) }
        let body = before + mapped
        return type + [0, UInt8(body.count)] + request[4..<20] + body
    }

    private static func accepts(_ probe: AddressProbe, _ bytes: [UInt8], from source: SocketAddress = server) -> Bool {
        bytes.withUnsafeBytes { probe.receive($0, from: source) }
    }

    @Test("F11: the request is a Binding request, the same each time, and its answer names the mapped address and port")
    func mapped() {
        let probe = AddressProbe(server: Self.server)
        let request = Self.sent(by: probe)
        #expect(
            request.count >= 20 && Array(request[0..<2]) == [0, 1] && Array(request[4..<8]) == [0x21, 0x12, 0xa4, 0x42])
        #expect(Self.sent(by: probe) == request)
        #expect(probe.mapped == nil)
        // SOURCE-ADDRESS of RFC 3489, which old servers still send.
        #expect(Self.accepts(probe, Self.answer(to: request, before: [0, 4, 0, 8, 0, 1, 13, 150, 192, 0, 2, 3])))
        #expect(probe.mapped == SocketAddress(ipv4: 0xcb00_7107, port: 41_000))
        #expect(!Self.accepts(probe, Self.answer(to: request)), "answered once")
    }

    @Test(
        "F11: what is not the server's answer is not taken: another source, another transaction, an error, a request, a cut one"
    )
    func others() {
        let probe = AddressProbe(server: Self.server)
        let request = Self.sent(by: probe), answer = Self.answer(to: request)
        #expect(!Self.accepts(probe, answer, from: SocketAddress(ipv4: 0xc000_0204, port: 3_478)))
        #expect(!Self.accepts(probe, answer, from: SocketAddress(ipv4: 0xc000_0203, port: 3_479)))
        var other = answer
        other[19] ^= 1
        #expect(!Self.accepts(probe, other))
        #expect(!Self.accepts(probe, request))
        for length in 0..<answer.count { #expect(!Self.accepts(probe, Array(answer.prefix(length)))) }
        #expect(probe.mapped == nil)
        #expect(Self.accepts(probe, answer), "none of them used the transaction up")
    }

    @Test("F11: two probes have different transactions")
    func transactions() {
        let one = Self.sent(by: AddressProbe(server: Self.server))
        #expect(one[8..<20] != Self.sent(by: AddressProbe(server: Self.server))[8..<20])
    }
}

import NetworkIO
import Primitives
import Testing

@Suite("Address filter")
struct AddressFilterTests {
    private static func v4(_ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> SocketAddress {
        SocketAddress(ipv4: a << 24 | b << 16 | c << 8 | d, port: 0)
    }
    private static let v6 = SocketAddress(high: 0x2001_0db8_0000_0001, low: 7, port: 0)

    @Test(
        "F2: networks in CIDR form",
        arguments: [
            (v4(10, 0, 0, 0), 8, v4(10, 200, 3, 4), true), (v4(10, 0, 0, 0), 8, v4(11, 0, 0, 1), false),
            (v4(192, 0, 2, 128), 25, v4(192, 0, 2, 129), true), (v4(192, 0, 2, 128), 25, v4(192, 0, 2, 127), false),
            (v4(192, 0, 2, 1), 32, v4(192, 0, 2, 1), true), (v4(192, 0, 2, 1), 32, v4(192, 0, 2, 2), false),
            (v4(0, 0, 0, 0), 0, v4(203, 0, 113, 9), true), (v4(0, 0, 0, 0), 0, v6, false),
            (SocketAddress(high: 0x2001_0db8_0000_0000, low: 0, port: 0), 32, v6, true),
            (SocketAddress(high: 0x2001_0db8_0000_0002, low: 0, port: 0), 64, v6, false),
            (SocketAddress(high: 0x2001_0db8_0000_0001, low: 0, port: 0), 125, v6, true),
            (SocketAddress(high: 0x2001_0db8_0000_0001, low: 0, port: 0), 126, v6, false),
            (SocketAddress(high: 0, low: 0, port: 0), 0, v4(10, 0, 0, 1), false),
        ])
    func networks(network: SocketAddress, bits: Int, address: SocketAddress, isInside: Bool) throws {
        let prefix = try #require(AddressPrefix(network, bits: bits))
        #expect(prefix.contains(address) == isInside)
    }

    @Test("F2: a prefix is no longer than its address")
    func bounds() {
        #expect(AddressPrefix(Self.v4(10, 0, 0, 0), bits: 33) == nil)
        #expect(AddressPrefix(Self.v4(10, 0, 0, 0), bits: -1) == nil)
        #expect(AddressPrefix(Self.v6, bits: 129) == nil)
    }

    @Test("F2: interfaces by name or prefix of the name; both conditions must hold")
    func interfaces() throws {
        let ten = try #require(AddressPrefix(Self.v4(10, 0, 0, 0), bits: 8))
        let filter = AddressFilter(interfaces: ["eth*", "wg0"], networks: [ten])
        #expect(filter.passes(Self.v4(10, 1, 1, 1), interface: "eth1"))
        #expect(filter.passes(Self.v4(10, 1, 1, 1), interface: "wg0"))
        #expect(!filter.passes(Self.v4(10, 1, 1, 1), interface: "wg01"))
        #expect(!filter.passes(Self.v4(11, 1, 1, 1), interface: "eth1"))
        #expect(AddressFilter().passes(Self.v6, interface: "lo"))
    }
}

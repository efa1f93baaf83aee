import Glibc
public import Primitives

extension SocketAddress {
    /// The address in a `struct sockaddr`; nil if it is neither IPv4 nor IPv6.
    init?(system address: UnsafeRawPointer) {
        switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
        // The IPv4 address follows family and port; the IPv6 address follows these and the flow label.
        case AF_INET:
            self.init(ipv4: UInt32(bigEndian: address.loadUnaligned(fromByteOffset: 4, as: UInt32.self)), port: 0)
        case AF_INET6:
            let high = address.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            let low = address.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
            self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low), port: 0)
        default: return nil
        }
    }

    /// Whether a host on the internet can have this address (IANA's registries of special-purpose addresses): not this machine, not its networks, no multicast
    /// group.
    public var isPublic: Bool {
        if isIPv4 {
            return !Self.specialIPv4.contains { ipv4 >> (32 - $0.bits) == $0.prefix >> (32 - $0.bits) }
        }
        // Global unicast is 2000::/3, except 2001::/23 (protocols), 2001:db8::/32 (documentation) and 2002::/16 (6to4, which may contain any IPv4 address).
        return high >> 61 == 1 && high >> 41 != 0x2001_0000 >> 9 && high >> 32 != 0x2001_0db8 && high >> 48 != 0x2002
    }

    private static let specialIPv4: [(prefix: UInt32, bits: UInt32)] = [
        (0x0000_0000, 8), (0x0a00_0000, 8), (0x6440_0000, 10), (0x7f00_0000, 8), (0xa9fe_0000, 16), (0xac10_0000, 12),
        (0xc000_0000, 24), (0xc000_0200, 24), (0xc0a8_0000, 16), (0xc612_0000, 15), (0xc633_6400, 24),
        (0xcb00_7100, 24), (0xe000_0000, 3),
    ]
}

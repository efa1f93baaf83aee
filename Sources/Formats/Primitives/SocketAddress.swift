/// An IP address, a port, and the transport by which it is reached, as two words and two numbers, so that comparing and hashing one costs a nanosecond.
///
/// The source or destination of a UDP datagram has no `connection`. For ICE-TCP (RFC 6544), `connection` names the worker's TCP connection, so that all code
/// that handles addresses works for both, and the worker knows where to write.
///
/// IPv4 is kept in its IPv6-mapped form (RFC 4291 section 2.5.5.2): one socket of the IPv6 family serves both.
public struct SocketAddress: Hashable, Sendable {
    /// The first eight bytes of the IPv6 address, in host order.
    public var high: UInt64
    /// The last eight bytes of the IPv6 address, in host order.
    public var low: UInt64
    /// The port in host order.
    public var port: UInt16
    /// Number of the worker's TCP connection; 0 for UDP.
    public var connection: UInt16

    @inlinable public init(high: UInt64, low: UInt64, port: UInt16, connection: UInt16 = 0) {
        self.high = high
        self.low = low
        self.port = port
        self.connection = connection
    }

    /// The IPv4 address `a.b.c.d` given as one big-endian word, for example `0x7f00_0001`.
    @inlinable public init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0x0000_ffff_0000_0000 | UInt64(ipv4), port: port)
    }

    /// Whether datagrams to it leave through a TCP connection.
    @inlinable public var isTCP: Bool { connection != 0 }
    /// Whether this is an IPv4 address.
    @inlinable public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
    /// The IPv4 address as one word; meaningful only where `isIPv4`.
    @inlinable public var ipv4: UInt32 { UInt32(truncatingIfNeeded: low) }

    /// Whether the address is 127.0.0.0/8 or ::1.
    public var isLoopback: Bool { isIPv4 ? ipv4 >> 24 == 127 : (high == 0 && low == 1) }

    /// The sixteen bytes of the address in network order.
    public var bytes: [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: high >> (56 - 8 * $0)) }
            + (0..<8).map { UInt8(truncatingIfNeeded: low >> (56 - 8 * $0)) }
    }

    /// A fast mix of all bits (splitmix64's finaliser) for open-addressed tables.
    @inlinable public var mixed: UInt64 {
        var z = high &+ low &* 0x9e37_79b9_7f4a_7c15 &+ (UInt64(port) | UInt64(connection) << 16)
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

extension SocketAddress {
    /// The address without its port in the usual text form, "192.0.2.1" or "2001:db8::1".
    public var host: String {
        if isIPv4 {
            return stride(from: 24, through: 0, by: -8).map { String(ipv4 >> $0 & 0xff) }.joined(separator: ".")
        }
        let shifts = stride(from: 48, through: 0, by: -16)
        let groups = [high, low].flatMap { half in shifts.map { half >> $0 & 0xffff } }
        let texts = groups.map { String($0, radix: 16) }
        let zeros = Self.longestRunOfZeros(groups)
        guard zeros.count >= 2 else { return texts.joined(separator: ":") }
        return texts[..<zeros.lowerBound].joined(separator: ":") + "::"
            + texts[zeros.upperBound...].joined(separator: ":")
    }

    /// The first of the longest runs of zeros, which the text leaves out (RFC 5952 section 4.2).
    private static func longestRunOfZeros(_ groups: [UInt64]) -> Range<Int> {
        var longest = 0..<0
        var start = 0
        for index in groups.indices {
            if groups[index] != 0 { start = index + 1 }
            if index + 1 - start > longest.count { longest = start..<index + 1 }
        }
        return longest
    }
}

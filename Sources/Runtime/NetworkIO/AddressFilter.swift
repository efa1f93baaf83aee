public import Primitives

/// A network in CIDR form: all addresses with the same leading bits.
public struct AddressPrefix: Sendable, Hashable {
    /// The network's address.
    public let address: SocketAddress
    /// The prefix length as written: 0 to 32 for IPv4, 0 to 128 for IPv6.
    public let bits: Int

    /// The network of the first `bits` bits of `address`; nil if it has fewer.
    public init?(_ address: SocketAddress, bits: Int) {
        guard bits >= 0, bits <= (address.isIPv4 ? 32 : 128) else { return nil }
        self.address = address
        self.bits = bits
    }

    /// Whether `other` is in the network. IPv4 and IPv6 networks never contain each other.
    public func contains(_ other: SocketAddress) -> Bool {
        guard other.isIPv4 == address.isIPv4 else { return false }
        // IPv4 is kept as ::ffff:a.b.c.d.
        let bits = address.isIPv4 ? bits + 96 : bits
        let high = Self.mask(min(bits, 64)), low = Self.mask(max(bits - 64, 0))
        return (other.high ^ address.high) & high == 0 && (other.low ^ address.low) & low == 0
    }

    private static func mask(_ bits: Int) -> UInt64 { bits == 0 ? 0 : UInt64.max << UInt64(64 - bits) }
}

/// Which of the machine's addresses are advertised.
public struct AddressFilter: Sendable, Hashable {
    /// Names of interfaces, "eth0" or "eth*"; empty: all.
    public var interfaces: [String]
    /// Networks that an address must belong to; empty: all.
    public var networks: [AddressPrefix]

    /// Accepts every address that is on one of `interfaces` and in one of `networks`.
    public init(interfaces: [String] = [], networks: [AddressPrefix] = []) {
        self.interfaces = interfaces
        self.networks = networks
    }

    /// Whether an address of an interface is advertised.
    public func passes(_ address: SocketAddress, interface: String) -> Bool {
        let isNamed = interfaces.contains { name in
            name.hasSuffix("*") ? interface.hasPrefix(name.dropLast()) : interface == name
        }
        return (interfaces.isEmpty || isNamed) && (networks.isEmpty || networks.contains { $0.contains(address) })
    }

    /// The addresses of `interfaces` that pass, each once, IPv4 first.
    public func addresses(of interfaces: [NetworkInterface]) -> [SocketAddress] {
        var found: [SocketAddress] = []
        for interface in interfaces {
            for address in interface.addresses
            where !found.contains(address) && passes(address, interface: interface.name) {
                found.append(address)
            }
        }
        return found.filter(\.isIPv4) + found.filter { !$0.isIPv4 }
    }
}

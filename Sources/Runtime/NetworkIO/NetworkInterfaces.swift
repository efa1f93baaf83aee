import Glibc
public import Primitives

/// A network interface that is up.
public struct NetworkInterface: Sendable, Hashable {
    /// "eth0"
    public let name: String
    /// Its addresses without loopback and link-local ones; the port is 0.
    public internal(set) var addresses: [SocketAddress]

    /// An interface with these addresses.
    public init(name: String, addresses: [SocketAddress]) {
        self.name = name
        self.addresses = addresses
    }
}

/// The machine's own addresses, for replies that must state where media is received.
public enum NetworkInterfaces {
    /// Addresses that pass `filter`, on interfaces that are up, without loopback and link-local ones, IPv4 first; the port is 0.
    public static func addresses(_ filter: AddressFilter = AddressFilter()) -> [SocketAddress] {
        filter.addresses(of: all())
    }

    /// Every interface that is up.
    public static func all() -> [NetworkInterface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [NetworkInterface] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard Int32(bitPattern: entry.pointee.ifa_flags) & Int32(IFF_UP) != 0 else { continue }
            let name = String(cString: entry.pointee.ifa_name)
            let index = found.firstIndex { $0.name == name } ?? found.count
            if index == found.count { found.append(NetworkInterface(name: name, addresses: [])) }
            if let address = entry.pointee.ifa_addr.flatMap(socketAddress), isRoutable(address) {
                found[index].addresses.append(address)
            }
        }
        return found
    }

    static func socketAddress(_ address: UnsafeMutablePointer<sockaddr>) -> SocketAddress? {
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            return SocketAddress(
                ipv4: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)), port: 0)
        case AF_INET6:
            return SocketAddress(
                high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), port: 0)
        default: return nil
        }
    }

    /// Not loopback, not 169.254/16, not fe80::/10.
    private static func isRoutable(_ address: SocketAddress) -> Bool {
        if address.isLoopback { return false }
        return address.isIPv4 ? address.ipv4 >> 16 != 0xa9fe : address.high >> 54 != 0xfe80 >> 6
    }
}

import Glibc
public import Primitives

/// The machine's own addresses, for answers that must name where media is received.
public enum NetworkInterfaces {
    /// Addresses that pass `filter`, of interfaces that are up, without loopback and link-local ones, IPv4 first; the port is 0.
    public static func addresses(_ filter: AddressFilter = AddressFilter()) -> [SocketAddress] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [SocketAddress] = []
        var next = list
        while let interface = next {
            next = interface.pointee.ifa_next
            let flags = Int32(bitPattern: interface.pointee.ifa_flags)
            guard flags & Int32(IFF_UP) != 0, let address = interface.pointee.ifa_addr,
                let candidate = socketAddress(address), isRoutable(candidate), !found.contains(candidate),
                filter.passes(candidate, interface: String(cString: interface.pointee.ifa_name))
            else { continue }
            found.append(candidate)
        }
        return found.filter(\.isIPv4) + found.filter { !$0.isIPv4 }
    }

    private static func socketAddress(_ address: UnsafeMutablePointer<sockaddr>) -> SocketAddress? {
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

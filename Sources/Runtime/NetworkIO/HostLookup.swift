import Glibc
public import Primitives

/// Names of hosts.
public enum HostLookup {
    /// One address of each family that `host` has and this machine could reach, IPv4 first, with `port`; empty if the name is unknown. Waits for the system's
    /// resolver: not for a loop or an actor.
    public static func addresses(of host: String, port: UInt16) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            guard let address = entry.pointee.ai_addr.flatMap(NetworkInterfaces.socketAddress) else { continue }
            let one = SocketAddress(high: address.high, low: address.low, port: port)
            if !found.contains(where: { $0.isIPv4 == one.isIPv4 }) { found.append(one) }
        }
        return found.sorted { $0.isIPv4 && !$1.isIPv4 }
    }
}

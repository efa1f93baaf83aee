import MediaWorkers
import NetworkIO
import Primitives

/// TCP ports that exclude each other: those of the listeners, and those of media, which accepts TCP connections on the numbers of its UDP ports.
extension Configuration {
    /// What listens for TCP connections.
    private struct TCPListener {
        /// The setting that says where.
        var path: String
        /// nil: all addresses, of both families.
        var address: SocketAddress?
        var ports: ClosedRange<Int>
        /// Its description in a fault, with one of its ports.
        var holder: String
        /// How else to make room.
        var wayOut = ""

        /// A port that both would have at the same address.
        func sharedPort(with other: TCPListener) -> Int? {
            let ports = ports.clamped(to: other.ports)
            guard self.ports.overlaps(other.ports), Self.overlap(address, other.address) else { return nil }
            return ports.lowerBound
        }

        /// Whether listeners on both addresses would conflict on one port: the addresses are equal, or one means all addresses. `::` includes IPv4.
        private static func overlap(_ a: SocketAddress?, _ b: SocketAddress?) -> Bool {
            guard let a, let b else { return true }
            func covers(_ a: SocketAddress, _ b: SocketAddress) -> Bool {
                a.isUnspecified && (!a.isIPv4 || b.isIPv4)
            }
            return a == b || covers(a, b) || covers(b, a)
        }
    }

    /// Media threads on `machine`.
    func workers(on machine: Machine) -> Int { media.workers > 0 ? media.workers : machine.processors }

    /// The setting that determines the workers' ports: the one of the two that was given.
    var workerPortsPath: String {
        origins["media.udp_port"] == nil && origins["media.workers"] != nil ? "media.workers" : "media.udp_port"
    }

    /// Faults for each pair of listeners of which the second could not listen.
    func portFaults(_ machine: Machine) -> [ConfigurationFault] {
        let listeners = tcpListeners(machine)
        return listeners.indices.flatMap { index in
            listeners[..<index].compactMap { conflict($0, listeners[index]) }
        }
    }

    /// In the order in which people look for the settings, without ports that the system chooses: those are free.
    private func tcpListeners(_ machine: Machine) -> [TCPListener] {
        func listener(_ path: String, _ host: String, _ port: UInt16) -> TCPListener? {
            guard port > 0, let address = SocketAddress(numeric: host) else { return nil }
            return TCPListener(path: path, address: address, ports: Int(port)...Int(port), holder: path)
        }
        var listeners = [
            listener("http.port", http.host, http.port),
            listener("private.port", privateListener.host, privateListener.port),
        ].compactMap { $0 }
        let base = Int(media.udpBasePort)
        if media.acceptsTCP, base > 0 {
            listeners.append(
                TCPListener(
                    path: workerPortsPath, address: media.bindAddress,
                    ports: base...base + workers(on: machine) - 1, holder: "a media thread, which takes TCP there, too",
                    wayOut: ", or set media.tcp to false"))
        }
        if let port = media.sharedTCPPort {
            listeners.append(
                TCPListener(
                    path: "media.tcp_port", address: media.bindAddress, ports: Int(port)...Int(port),
                    holder: "media.tcp_port"))
        }
        return listeners
    }

    private func conflict(_ first: TCPListener, _ second: TCPListener) -> ConfigurationFault? {
        guard let port = first.sharedPort(with: second) else { return nil }
        // Reported at the one that was given, if only one was.
        let isFirst = origins[second.path] == nil && origins[first.path] != nil
        let (own, other) = isFirst ? (first, second) : (second, first)
        return fault(
            own.path,
            "port \(port) is also that of \(other.holder); choose another one\(own.wayOut)\(other.wayOut)")
    }
}

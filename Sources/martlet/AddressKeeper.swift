import Dispatch
import Logging
import MediaWorkers
import NetworkIO
import Primitives
import RoomService

/// `media.announced_addresses: discover`: asks a STUN server at which addresses clients reach the media ports, at start and regularly afterwards, because NAT
/// mappings expire and providers assign other addresses.
struct AddressKeeper: Sendable {
    /// NATs keep a UDP mapping for two minutes at least (RFC 4787, REQ-5): asking sooner also keeps it.
    static let interval = Duration.seconds(60)
    /// Shorter, because until an address is found, clients cannot connect.
    static let retryInterval = Duration.seconds(10)

    private let server: HostAndPort
    private let workers: MediaWorkerPool
    private let rooms: RoomHost
    private let logger: Logger

    /// nil if the configuration names all addresses.
    init?(_ configuration: Configuration, _ workers: MediaWorkerPool, _ rooms: RoomHost, _ logger: Logger) {
        guard configuration.media.discoversAddresses, let server = configuration.stunServer else { return nil }
        self.server = server
        self.workers = workers
        self.rooms = rooms
        self.logger = logger
    }

    /// Asks regularly until the task is cancelled. `areKnown`: addresses were found already.
    func run(areKnown: Bool) async {
        var areKnown = areKnown
        while (try? await Task.sleep(for: areKnown ? Self.interval : Self.retryInterval)) != nil {
            areKnown = await ask()
        }
    }

    /// Asks once, and gives the addresses to rooms for the descriptions that they make from now on; returns whether every worker has an address. Without an
    /// answer, the known addresses are kept.
    func ask() async -> Bool {
        let server = server
        let addresses = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: HostLookup.addresses(of: server.host, port: server.port))
            }
        }
        guard !addresses.isEmpty else {
            logger.warning(
                "cannot resolve the STUN server's name; the previous addresses stay advertised; see media.stun_server",
                ["server": .text("\(server)")])
            return false
        }
        var found = [[SocketAddress]](repeating: [], count: workers.workers.count)
        for address in addresses {
            for (index, mapped) in await workers.discover(address).enumerated() {
                if let mapped { found[index].append(mapped) }
            }
        }
        guard found.allSatisfy({ !$0.isEmpty }) else {
            logger.warning(
                "the STUN server does not answer the media ports; the previous addresses stay advertised; "
                    + "let UDP out of the media ports to it, or see media.stun_server",
                ["server": .text("\(server)")])
            return false
        }
        guard workers.advertise(discovered: found) else { return true }
        await rooms.addressesChanged()
        let texts = found.map { $0.map(\.textWithPort).joined(separator: " ") }.joined(separator: ", ")
        logger.info("advertising the addresses that the STUN server sees", ["addresses": .text(texts)])
        return true
    }
}

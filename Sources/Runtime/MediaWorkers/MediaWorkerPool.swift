public import Cryptography
public import Logging
public import MediaControl
import MediaEngine
public import NetworkIO
public import Primitives
import Synchronization

/// Why the workers did not start.
public enum MediaWorkerError: Error, Sendable, Hashable {
    /// A system call for worker `index` failed, for example because its port is in use.
    case system(index: Int, SystemError)
    /// A TCP port is not available: that of worker `index`, or, with nil, the shared one.
    case tcp(index: Int?, port: UInt16, SystemError)
    /// Worker `index` would listen above port 65535.
    case noPort(index: Int)
    /// OpenSSL did not accept the certificate.
    case certificate(CryptographyError)
}

/// All media workers of the process.
public final class MediaWorkerPool: Sendable {
    /// The workers by index.
    public let workers: [MediaWorker]
    /// Events of all workers, each worker's in order, in batches of one turn. One reader.
    ///
    /// Unbounded, because none may be lost; the commands of the control plane limit their number.
    public let events: AsyncStream<[MediaEvent]>
    /// SHA-256 of the certificate that every worker presents.
    public let fingerprintSHA256: [UInt8]
    /// Each worker's records, for one recorder; empty if recording is disabled.
    public let recordRings: [RecordRing]
    private let advertisedAddresses: [SocketAddress]
    /// Advertised in addition to discovered addresses.
    private let givenAddresses: [SocketAddress]
    /// By worker; empty until they are discovered.
    private let discovered: Mutex<[[SocketAddress]]>
    private let acceptsTCP: Bool
    private let acceptor: TCPAcceptor?
    private let announcedTCPPort: UInt16?
    private let endEvents: @Sendable () -> Void
    private let threads: Mutex<[LoopThread]>
    private let acceptorThread: Mutex<LoopThread?>
    private let lastPlaced = Atomic<Int>(0)
    let logger: Logger
    let watchdog: Mutex<Watchdog>
    /// Pending calls to each worker.
    let calls: [WorkerCalls]
    /// As last reported by each worker.
    let lastStatistics: Mutex<[WorkerStatistics]>

    /// Opens the ports and starts the threads.
    public init(
        configuration: MediaWorkerConfiguration, certificate: Certificate, logger: Logger
    ) throws(MediaWorkerError) {
        let (events, continuation) = AsyncStream<[MediaEvent]>.makeStream(bufferingPolicy: .unbounded)
        let processors = Processors.usable
        var workers: [MediaWorker] = []
        let count = configuration.workers > 0 ? configuration.workers : Processors.busyAtOnce()
        // Before anything is opened: a number that wrapped around would be another port, or one that the system chooses.
        let above = Int(UInt16.max) + 1 - Int(configuration.udpBasePort)
        guard configuration.udpBasePort == 0 || count <= above else { throw .noPort(index: above) }
        recordRings = Self.rings(configuration, count)
        for index in 0..<count {
            let worker = try Self.makeWorker(index, configuration, certificate, recordRings) { continuation.yield($0) }
            workers.append(worker)
        }
        acceptor = try Self.makeAcceptor(configuration, workers)
        (acceptsTCP, announcedTCPPort) = (configuration.acceptsTCP, configuration.announcedTCPPort)
        self.events = events
        self.workers = workers
        self.logger = logger
        watchdog = Mutex(Watchdog(loops: workers.count))
        calls = workers.map { _ in WorkerCalls() }
        lastStatistics = Mutex(Array(repeating: WorkerStatistics(), count: workers.count))
        fingerprintSHA256 = certificate.fingerprintSHA256
        endEvents = { continuation.finish() }
        advertisedAddresses = Self.advertisedAddresses(configuration)
        givenAddresses = configuration.advertisedAddresses
        discovered = Mutex(Array(repeating: [], count: workers.count))
        if advertisedAddresses.allSatisfy(\.isLoopback), configuration.addressFilter != AddressFilter() {
            logger.warning(
                "no address matches media.interfaces and media.networks; only clients on this machine can connect media"
            )
        }
        threads = Mutex([])
        acceptorThread = Mutex(nil)
        for worker in workers {
            let cpu = configuration.pinsThreads ? processors[worker.index % processors.count] : nil
            do throws(SystemError) {
                let thread = try LoopThread(name: "media-\(worker.index)", cpu: cpu) { worker.run() }
                threads.withLock { $0.append(thread) }
            } catch {
                throw .system(index: worker.index, error)
            }
        }
        if let acceptor {
            do throws(SystemError) {
                let thread = try LoopThread(name: "media-accept", cpu: nil) { acceptor.run() }
                acceptorThread.withLock { $0 = thread }
            } catch {
                throw .tcp(index: nil, port: acceptor.port, error)
            }
        }
        let ciphers = WorkerEngine.cipherDescriptions
        logger.info(
            "media workers started",
            [
                "workers": .number(workers.count), "port": .number(workers[0].port),
                "forwarding_cipher": .text(ciphers.forwarded), "other_cipher": .text(ciphers.other),
            ])
    }

    /// The addresses at which clients reach `worker` over UDP.
    public func candidates(of worker: MediaWorker) -> [SocketAddress] {
        let found = discovered.withLock { $0[worker.index] }
        let others = (found.isEmpty ? advertisedAddresses : givenAddresses).map { address in
            let port = address.port == 0 ? worker.port : address.port &+ UInt16(worker.index)
            return SocketAddress(high: address.high, low: address.low, port: port)
        }
        return found + others.filter { !found.contains($0) }
    }

    /// Advertises the addresses that were discovered for each worker; returns whether they have changed. For a family without a response, for example because
    /// it was lost on its way or a name was not resolved, the known address stays.
    public func advertise(discovered addresses: [[SocketAddress]]) -> Bool {
        discovered.withLock { known in
            let next = zip(addresses, known).map { found, known in
                let others = known.filter { old in !found.contains { $0.isIPv4 == old.isIPv4 } }
                return (found + others).sorted { $0.isIPv4 && !$1.isIPv4 }
            }
            defer { known = next }
            return known != next
        }
    }

    /// The addresses at which clients reach `worker` over TCP: at its own port, which has the number of the UDP port also behind a port mapping, and at the
    /// shared one. A port that was discovered for UDP does not apply to TCP, so such an address counts only if the NAT keeps port numbers.
    public func tcpCandidates(of worker: MediaWorker) -> [SocketAddress] {
        let found = discovered.withLock { $0[worker.index] }
        let own = acceptsTCP ? candidates(of: worker).filter { $0.port == worker.port || !found.contains($0) } : []
        guard let acceptor else { return own }
        var shared: [SocketAddress] = []
        for address in candidates(of: worker) {
            let port = announcedTCPPort ?? acceptor.port
            let candidate = SocketAddress(high: address.high, low: address.low, port: port)
            if !shared.contains(candidate) { shared.append(candidate) }
        }
        return own + shared
    }

    /// Counters of connections at the shared TCP port that did not reach a worker; empty without one.
    public var sharedPortStatistics: TCPStatistics { acceptor?.statistics ?? TCPStatistics() }
    /// The shared TCP port; nil without one.
    public var sharedTCPPort: UInt16? { acceptor?.port }

    /// The worker for the next room: the one with the least load, and among equals the next in turn, so that rooms that are created at the same
    /// time, before any of them has members, are distributed. nil if every worker hangs or is in `excluded`.
    public func leastLoadedWorker(except excluded: Set<Int> = []) -> MediaWorker? {
        let start = lastPlaced.load(ordering: .relaxed) + 1
        let order = (0..<workers.count).map { workers[($0 + start) % workers.count] }.filter {
            !hangs($0.index) && !excluded.contains($0.index)
        }
        guard let first = order.first else { return nil }
        let chosen = order.dropFirst().reduce(first) { $1.load < $0.load ? $1 : $0 }
        lastPlaced.store(chosen.index, ordering: .relaxed)
        return chosen
    }

    /// Plays a feed into the rooms of worker `index`, which has its peer, until it is closed, or resumes one that was idle; false after the end of the worker.
    public func play(_ feed: PlaybackFeed, on index: Int) -> Bool { workers[index].play(feed) }

    /// Ends the loops and their threads, then the event stream. Later commands have no effect on the network. A worker that hangs is left as it is.
    public func stop() async {
        acceptor?.stop()
        acceptorThread.withLock { thread -> LoopThread? in
            defer { thread = nil }
            return thread
        }?.join()
        var ended = Set<Int>()
        for worker in workers where (try? await ask(worker.index, { $0.requestStop() })) != nil {
            ended.insert(worker.index)
        }
        // Each loop ends after the turn it is in, so joining takes microseconds.
        let running = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for (index, thread) in running.enumerated() where ended.contains(index) { thread.join() }
        endEvents()
        if !running.isEmpty { logger.info("media workers stopped") }
    }

    private static func rings(_ configuration: MediaWorkerConfiguration, _ count: Int) -> [RecordRing] {
        let bytes = configuration.recordRingBytes
        return bytes > 0 ? (0..<count).map { _ in RecordRing(bytes: bytes) } : []
    }

    private static func makeWorker(
        _ index: Int, _ configuration: MediaWorkerConfiguration, _ certificate: Certificate, _ rings: [RecordRing],
        publishEvents: @escaping @Sendable ([MediaEvent]) -> Void
    ) throws(MediaWorkerError) -> MediaWorker {
        let base = configuration.udpBasePort
        let port = base == 0 ? 0 : base + UInt16(index)
        var generator = SystemRandomNumberGenerator()
        let seed = configuration.seed.map { $0 &+ UInt64(index) } ?? generator.next()
        var address = UDPSocketConfiguration(address: configuration.bindAddress, port: port)
        address.marksMedia = configuration.marksMedia
        do {
            let engine = try WorkerEngine(configuration: configuration.engine, certificate: certificate, seed: seed)
            var socket = try UDPSocket(address)
            var listener: TCPSocket?
            // A port that the system chose for UDP may be in use for TCP: try another one.
            var attempts = base == 0 ? 16 : 1
            while configuration.acceptsTCP, listener == nil {
                attempts -= 1
                do throws(SystemError) {
                    listener = try TCPSocket.listening(
                        to: configuration.bindAddress, port: socket.port, backlog: Self.tcpBacklog)
                } catch {
                    guard attempts > 0 else { throw MediaWorkerError.tcp(index: index, port: socket.port, error) }
                    socket = try UDPSocket(address)
                }
            }
            let lane: TCPLane? =
                configuration.acceptsTCP || configuration.sharedTCPPort != nil
                ? try TCPLane(listener: listener, maximumConnections: configuration.maximumTCPConnections) : nil
            return MediaWorker(
                index: index, engine: engine, socket: socket, configuration: address, tcp: lane,
                executor: try LoopExecutor(),
                gatherLimit: .microseconds(Int64(configuration.gatherMicroseconds)),
                records: rings.dropFirst(index).first,
                publishEvents: publishEvents)
        } catch let error as MediaWorkerError {
            throw error
        } catch let error as SystemError {
            throw .system(index: index, error)
        } catch let error as CryptographyError {
            throw .certificate(error)
        } catch {
            throw .certificate(.failed(call: "\(error)"))
        }
    }

    /// Connections that the kernel keeps for a worker between two turns.
    private static let tcpBacklog: Int32 = 256

    private static func makeAcceptor(
        _ configuration: MediaWorkerConfiguration, _ workers: [MediaWorker]
    ) throws(MediaWorkerError) -> TCPAcceptor? {
        guard let port = configuration.sharedTCPPort else { return nil }
        do throws(SystemError) {
            return try TCPAcceptor(address: configuration.bindAddress, port: port) { connection, index in
                index < workers.count && workers[index].adopt(connection)
            }
        } catch {
            throw .tcp(index: nil, port: port, error)
        }
    }

    private static func advertisedAddresses(_ configuration: MediaWorkerConfiguration) -> [SocketAddress] {
        if !configuration.advertisedAddresses.isEmpty { return configuration.advertisedAddresses }
        if let address = configuration.bindAddress {
            return [SocketAddress(high: address.high, low: address.low, port: 0)]
        }
        // No address is left, as on a machine without a network: the machine itself.
        let addresses = NetworkInterfaces.addresses(configuration.addressFilter)
        return addresses.isEmpty ? [SocketAddress(ipv4: 0x7f00_0001, port: 0)] : addresses
    }
}

public import Cryptography
public import MediaControl
public import MediaEngine
public import Primitives

/// Engines, links and scripted clients in virtual time: one seed, one run.
///
/// A scenario opens rooms, lets clients join and act, and advances time with ``run(for:)``. Whatever the engines send to a client is checked against
/// the invariants of forwarding; violations are in ``faults``.
public final class World {
    /// Decides the whole run.
    public let seed: UInt64
    /// The moment.
    public internal(set) var now = MonotonicTime(milliseconds: 1_000)
    /// For a scenario's own random choices.
    public var random: RandomSource
    /// The workers.
    public let workers: [EngineDriver]
    /// The engines' events, in order.
    public internal(set) var events: [(time: MonotonicTime, event: MediaEvent)] = []
    /// The run so far: clear RTP and engine events with their times.
    public internal(set) var digest = RunDigest()
    /// Datagrams sent to addresses that no client has any more.
    public internal(set) var undeliverable = 0
    let certificate: Certificate
    let clientContext: ClientContext
    var clientTable: [VirtualClient?] = []
    var addresses: [SocketAddress: Int] = [:]
    var rooms: [RoomID: Int] = [:]
    var agenda = EventQueue<Happening>()
    var oldFaults: [String] = []
    var lastID: UInt64 = 0
    /// The buffer in which a client writes one packet or reads one datagram.
    let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    /// The buffer in which a datagram is checked before it is sent down a link.
    let glass = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    /// The buffer in which a client writes its feedback while a datagram is in `slot`.
    let feedbackSlot = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 16)
    /// What a client's transport sends in one call.
    var clientBatch = OutboundBatch(datagrams: 64, bytes: 1 << 17)

    enum Happening {
        case up(worker: Int, source: SocketAddress, bytes: [UInt8])
        case down(client: Int, destination: SocketAddress, bytes: [UInt8], isClear: Bool)
        case wake(client: Int)
        case script(() -> Void)
    }

    /// Why a world cannot be made.
    public enum Failure: Error {
        case cryptography(CryptographyError)
        case clients(ClientContext.Failure)
    }

    /// A world of `workers` workers without rooms.
    public init(seed: UInt64, workers count: Int = 1, configuration: EngineConfiguration = .init()) throws(Failure) {
        self.seed = seed
        var random = RandomSource(seed: seed)
        do {
            let certificate = try Certificate.selfSigned()
            var workers: [EngineDriver] = []
            for index in 0..<count {
                let engine = try WorkerEngine(
                    configuration: configuration, certificate: certificate, seed: random.next())
                workers.append(
                    EngineDriver(engine, at: SocketAddress(ipv4: 0x0aff_0001 + UInt32(index), port: 7_900)))
            }
            self.certificate = certificate
            self.workers = workers
        } catch { throw .cryptography(error) }
        do {
            clientContext = try ClientContext(certificate: certificate)
        } catch { throw .clients(error) }
        self.random = random
    }

    deinit {
        slot.deallocate()
        glass.deallocate()
        feedbackSlot.deallocate()
    }

    /// The clients that have not left, in order of joining.
    public var clients: [VirtualClient] { clientTable.compactMap { $0 } }

    /// Every violated invariant so far, with the client that saw it; clients that have left included.
    public var faults: [String] { oldFaults + clients.flatMap(\.faults) }

    /// When the engines reported an event that `isMatch` accepts.
    public func times(where isMatch: (MediaEvent) -> Bool) -> [MonotonicTime] {
        events.filter { isMatch($0.event) }.map(\.time)
    }

    /// The report of its worker about a room.
    public func statistics(of room: RoomID) -> MediaReport? {
        rooms[room].flatMap { workers[$0].engine.report(.room(room)) }
    }

    // MARK: - Control plane

    /// Opens a room on a worker.
    public func openRoom(on worker: Int = 0) -> RoomID {
        let room = RoomID(makeID())
        rooms[room] = worker
        apply(.addRoom(room), on: worker)
        return room
    }

    /// Closes an empty room.
    public func closeRoom(_ room: RoomID) {
        guard let worker = rooms.removeValue(forKey: room) else { return }
        apply(.removeRoom(room), on: worker)
    }

    /// A client joins: descriptions are exchanged at once, then it connects over its links.
    public func join(_ room: RoomID, _ settings: ClientSettings = .init()) -> VirtualClient {
        guard let worker = rooms[room] else { preconditionFailure("join a room that is open") }
        let client = VirtualClient(id: PeerID(makeID()), room: room, worker: worker, settings: settings, world: self)
        clientTable.append(client)
        addresses[client.address] = client.index
        apply(.addPeer(client.makeDescription()), on: worker)
        client.schedule()
        return client
    }

    /// Sends a command to a worker, as the control plane does.
    public func apply(_ command: MediaCommand, on worker: Int = 0) {
        workers[worker].apply(command, at: now) { carryDown($0) }
    }

    /// Numbers of rooms, peers, tracks and subscriptions; never used twice.
    func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }
}

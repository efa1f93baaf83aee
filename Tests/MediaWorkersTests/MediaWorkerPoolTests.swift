import Cryptography
import Logging
import MediaControl
import MediaEngine
import NetworkIO
import Primitives
import Testing

@testable import MediaWorkers

@Suite("Media workers", .timeLimit(.minutes(1)))
struct MediaWorkerPoolTests {
    static func pool(
        workers: Int = 2, configure: (inout MediaWorkerConfiguration) -> Void = { _ in }
    ) throws -> MediaWorkerPool {
        var configuration = MediaWorkerConfiguration()
        configuration.workers = workers
        configuration.udpBasePort = 0
        configuration.bindAddress = SocketAddress(ipv4: 0x7f00_0001, port: 0)
        configuration.seed = 1
        configure(&configuration)
        return try MediaWorkerPool(configuration: configuration, certificate: try .selfSigned(), logger: .quiet)
    }

    static func peer(_ id: UInt64, room: RoomID) -> PeerDescription {
        let local = ICECredentials(ufrag: "ufrag\(id)", password: "0123456789012345678901\(id)")
        return PeerDescription(
            id: PeerID(id), room: room, profile: .full, localICE: local, remote: nil, feedbackSSRC: 1)
    }

    @Test("Each worker has its port and its thread, and takes turns; stop ends all of them")
    func lifecycle() async throws {
        let pool = try Self.pool(workers: 3)
        #expect(Set(pool.workers.map(\.port)).count == 3)
        #expect(pool.workers.map(\.index) == [0, 1, 2])
        #expect(pool.candidates(of: pool.workers[1]) == [SocketAddress(ipv4: 0x7f00_0001, port: pool.workers[1].port)])
        for worker in pool.workers { await worker.apply([.addRoom(RoomID(1))]) }
        for statistics in await pool.statistics() {
            #expect(statistics.rooms == 1)
            #expect(statistics.turns > 0)
        }
        await pool.stop()
        var batches = 0
        for await _ in pool.events { batches += 1 }
        #expect(batches == 0, "the stream of events has ended")
        // Late callers are answered, not left waiting.
        #expect(await pool.workers[0].statistics().rooms == 1)
        await pool.stop()
    }

    @Test("Commands are executed in order, before the next query")
    func commands() async throws {
        let pool = try Self.pool(workers: 1)
        let worker = try #require(pool.leastLoadedWorker())
        let room = RoomID(7)
        await worker.apply([.addRoom(room), .addPeer(Self.peer(1, room: room)), .addPeer(Self.peer(2, room: room))])
        #expect(try await pool.report(.room(room), on: 0)?.peers.map(\.peer) == [PeerID(1), PeerID(2)])
        #expect(worker.load == 3)
        await worker.apply([.removePeer(PeerID(1)), .removePeer(PeerID(2)), .removeRoom(room)])
        #expect(try await pool.report(.room(room), on: 0) == nil)
        #expect(worker.load == 0)
        await pool.stop()
    }

    @Test("The statistics of a room of hundreds are complete, although they are gathered in parts")
    func largeRoom() async throws {
        let pool = try Self.pool(workers: 1)
        let worker = try #require(pool.leastLoadedWorker())
        let room = RoomID(7), other = RoomID(8)
        let peers = (1...500 as ClosedRange<UInt64>).map { Self.peer($0, room: $0.isMultiple(of: 5) ? other : room) }
        await worker.apply([.addRoom(room), .addRoom(other)] + peers.map { .addPeer($0) })
        let own = peers.filter { $0.room == room }.map(\.id)
        #expect(try await pool.report(.room(room), on: 0)?.peers.map(\.peer) == own)
        #expect(try await pool.report(.room(other), on: 0)?.peers.count == 100)
        await pool.stop()
    }

    @Test("A long list of commands is carried out in parts, in order, with turns for media between")
    func longList() async throws {
        let pool = try Self.pool(workers: 1)
        let room = RoomID(7), worker = pool.workers[0]
        let peers = (1...1_500 as ClosedRange<UInt64>).map { Self.peer($0, room: room) }
        let before = worker.loopTurns
        try await pool.apply([.addRoom(room)] + peers.map { MediaCommand.addPeer($0) }, on: 0)
        #expect(worker.loopTurns - before > 5)
        #expect(try await pool.report(.room(room), on: 0)?.peers.map(\.peer) == peers.map(\.id))
        pool.post(peers.map { MediaCommand.removePeer($0.id) } + [.removeRoom(room)], on: 0)
        #expect(try await pool.report(.room(room), on: 0) == nil)
        await pool.stop()
        // Late callers have theirs carried out whole, too.
        try await pool.apply([.addRoom(room)] + peers.prefix(40).map { MediaCommand.addPeer($0) }, on: 0)
        #expect(try await pool.report(.room(room), on: 0)?.peers.count == 40)
    }

    @Test("Many tasks may send commands to one worker at once")
    func concurrency() async throws {
        let pool = try Self.pool(workers: 2)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let worker = pool.workers[number % 2]
                    await worker.apply([.addRoom(RoomID(UInt64(number)))])
                    if number % 4 < 2 { await worker.apply([.removeRoom(RoomID(UInt64(number)))]) }
                }
            }
        }
        let rooms = await pool.statistics().map(\.rooms)
        #expect(rooms == [50, 50])
        await pool.stop()
    }

    @Test("Rooms are placed on the worker with the least load, and spread before they have participants")
    func placement() async throws {
        let pool = try Self.pool(workers: 3)
        #expect(Set((0..<3).map { _ in pool.leastLoadedWorker()?.index }) == [0, 1, 2])
        await pool.workers[0].apply([.addRoom(RoomID(1))])
        await pool.workers[2].apply([.addRoom(RoomID(2))])
        for _ in 0..<4 { #expect(pool.leastLoadedWorker()?.index == 1) }
        await pool.stop()
    }

    @Test("Datagrams from unknown sources are received and counted")
    func unknownSources() async throws {
        let pool = try Self.pool(workers: 1)
        let worker = pool.workers[0]
        var client = try UDPSocket(UDPSocketConfiguration(address: SocketAddress(ipv4: 0x7f00_0001, port: 0), port: 0))
        var batch = OutboundBatch(datagrams: 64, bytes: 10_000)
        for _ in 0..<50 {
            let isTaken = [UInt8](repeating: 0x80, count: 100).withUnsafeBytes {
                batch.append($0, to: SocketAddress(ipv4: 0x7f00_0001, port: worker.port))
            }
            #expect(isTaken)
        }
        client.send(batch)
        // The first call may be served just before the turn that fetches them.
        _ = await worker.statistics()
        let statistics = await worker.statistics()
        #expect(statistics.drops.total == 50)
        #expect(statistics.receiveBufferDrops == 0)
        await pool.stop()
    }

    @Test("The loop wakes at the engine's deadlines and delivers its events")
    func deadlines() async throws {
        let pool = try Self.pool(workers: 2) { $0.engine.setupTimeout = .milliseconds(20) }
        let room = RoomID(1)
        var peer = Self.peer(5, room: room)
        peer.remote = RemoteTransport(
            ice: ICECredentials(ufrag: "theirs", password: "their-password-of-22-characters"),
            fingerprintSHA256: [UInt8](repeating: 1, count: 32), localRole: .server)
        await pool.workers[1].apply([.addRoom(room), .addPeer(peer)])
        var events = pool.events.makeAsyncIterator()
        let batch = try #require(await events.next())
        guard case .peerMeasured(PeerID(5), _) = batch.first else {
            Issue.record("the first event is \(batch.first.map { "\($0)" } ?? "missing")")
            return
        }
        #expect(batch.dropFirst() == [.peerEnded(PeerID(5), .iceTimeout)])
        await pool.stop()
    }

    @Test(
        "An announced address with a port names the first worker's, the others count up; one without a port uses the bound ports"
    )
    func announcedPorts() async throws {
        let pool = try Self.pool(workers: 3) {
            $0.advertisedAddresses = [
                SocketAddress(ipv4: 0xc000_0207, port: 40_000), SocketAddress(ipv4: 0xc000_0208, port: 0),
            ]
        }
        for worker in pool.workers {
            #expect(pool.candidates(of: worker).map(\.port) == [40_000 + UInt16(worker.index), worker.port])
        }
        await pool.stop()
    }

    @Test("F2: of the machine's addresses those that pass the filter are advertised; where none does, loopback alone")
    func filteredAddresses() async throws {
        let loopback = SocketAddress(ipv4: 0x7f00_0001, port: 0)
        let own = NetworkInterfaces.addresses()
        // Networks for documentation (RFC 5737): a machine may be in one of them, but not in all.
        let documentation = [0xc000_0200, 0xc633_6400, 0xcb00_7100].compactMap {
            AddressPrefix(SocketAddress(ipv4: $0, port: 0), bits: 24)
        }
        let elsewhere = try #require(documentation.first { network in !own.contains(where: network.contains) })
        var cases = [(network: elsewhere, advertised: loopback)]
        for address in own.prefix(2) {
            let network = try #require(AddressPrefix(address, bits: address.isIPv4 ? 32 : 128))
            cases.append((network, address))
        }
        for (network, address) in cases {
            let pool = try Self.pool(workers: 1) {
                $0.bindAddress = nil
                $0.addressFilter = AddressFilter(networks: [network])
            }
            let worker = pool.workers[0]
            let expected = [SocketAddress(high: address.high, low: address.low, port: worker.port)]
            #expect(pool.candidates(of: worker) == expected && pool.tcpCandidates(of: worker) == expected)
            await pool.stop()
        }
    }

    @Test("F11: a discovered address stays while only the other family's question is answered")
    func discoveredFamilies() async throws {
        let pool = try Self.pool(workers: 1)
        let worker = pool.workers[0]
        let v4 = SocketAddress(ipv4: 0xcb00_7101, port: 41_000)
        let v6 = SocketAddress(high: 0x2001_0db8_0000_0000, low: 7, port: 7_900)
        #expect(pool.advertise(discovered: [[v4, v6]]))
        #expect(!pool.advertise(discovered: [[v6]]))
        #expect(!pool.advertise(discovered: [[v4]]))
        #expect(pool.candidates(of: worker) == [v4, v6])
        let moved = SocketAddress(ipv4: 0xcb00_7109, port: 42_000)
        #expect(pool.advertise(discovered: [[moved]]))
        #expect(pool.candidates(of: worker) == [moved, v6])
        await pool.stop()
    }

    @Test("A port in use is reported with the worker's number")
    func takenPort() async throws {
        let holder = try UDPSocket(UDPSocketConfiguration(address: SocketAddress(ipv4: 0x7f00_0001, port: 0), port: 0))
        do {
            _ = try Self.pool(workers: 1) { $0.udpBasePort = holder.port }
            Issue.record("started on a taken port")
        } catch MediaWorkerError.system(let index, let error) {
            #expect(index == 0)
            #expect(error.call == "bind")
        }
    }

    @Test("Workers whose ports would be above 65535 are refused before any port is opened")
    func portsAboveTheLast() throws {
        let error = #expect(throws: MediaWorkerError.self) {
            _ = try Self.pool(workers: 8) { $0.udpBasePort = 65_535 }
        }
        #expect(error == .noPort(index: 1))
    }
}

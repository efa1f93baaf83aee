import Cryptography
import MediaControl
import NetworkIO
import Primitives
import Simulation
import Testing

@testable import MediaWorkers

/// Clients over real TCP connections at a worker's own port and at a shared one.
@Suite("ICE-TCP at a media worker", .timeLimit(.minutes(1)))
struct TCPTests {
    /// A pool with a room and a peer on its last worker, and a client for that peer.
    private struct Stage {
        let pool: MediaWorkerPool
        let worker: MediaWorker
        let peer: PeerDescription
        let context: ClientContext
        var events: AsyncStream<[MediaEvent]>.AsyncIterator

        init(workers: Int = 1, configure: (inout MediaWorkerConfiguration) -> Void = { _ in }) async throws {
            pool = try MediaWorkerPoolTests.pool(workers: workers, configure: configure)
            worker = pool.workers[workers - 1]
            context = try ClientContext(certificate: try .selfSigned(), profiles: "SRTP_AEAD_AES_128_GCM")
            var peer = MediaWorkerPoolTests.peer(5, room: RoomID(1))
            peer.localICE.ufrag = WorkerMark.text(worker: worker.index) + "ufrag"
            peer.remote = RemoteTransport(
                ice: ICECredentials(ufrag: "cli1", password: "passwordpasswordpassword"),
                fingerprintSHA256: context.certificate.fingerprintSHA256, localRole: .server)
            self.peer = peer
            await worker.apply([.addRoom(RoomID(1)), .addPeer(peer)])
            events = pool.events.makeAsyncIterator()
        }

        func client(port: UInt16? = nil) -> FramedClient {
            FramedClient(
                port: port ?? worker.port, peer: peer, context: context, serverFingerprint: pool.fingerprintSHA256)
        }

        /// The worker's counters once `isDone` holds for them; each question is a turn of its loop.
        func statistics(_ client: FramedClient? = nil, when isDone: (WorkerStatistics) -> Bool) async
            -> WorkerStatistics
        {
            var last = await worker.statistics()
            for _ in 0..<20_000 where !isDone(last) {
                client?.work()
                last = await worker.statistics()
            }
            return last
        }

        /// Works until the client is connected.
        func connect(_ client: FramedClient) async {
            for _ in 0..<20_000 where !client.transport.isConnected {
                client.work()
                _ = await worker.statistics()
            }
        }
    }

    @Test("F9: a client connects over TCP, is known by its connection, and comes back on another one when that breaks")
    func connects() async throws {
        var stage = try await Stage()
        let client = stage.client()
        await stage.connect(client)
        #expect(client.transport.isConnected)
        var connected = false
        while !connected, let events = await stage.events.next() {
            connected = events.contains(.peerConnected(PeerID(5)))
        }
        #expect(await stage.worker.statistics().tcp.open == 1)
        // The connection breaks; the peer stays, and its next check comes from another one.
        client.close()
        let broken = await stage.statistics { $0.tcp[.byPeer] == 1 }
        #expect(broken.tcp.open == 0 && broken.peers == 1)
        let checks = client.transport.serverChecks
        client.reconnect()
        let back = await stage.statistics(client) { _ in client.transport.serverChecks > checks }
        #expect(back.tcp.open == 1 && back.tcp.accepted == 2 && client.transport.serverChecks > checks)
        await stage.pool.stop()
    }

    @Test("F9: one shared port hands each connection to the worker whose mark the user name fragment has")
    func shared() async throws {
        let stage = try await Stage(workers: 3) {
            $0.acceptsTCP = false
            $0.sharedTCPPort = 0
            $0.announcedTCPPort = 443
        }
        #expect(stage.pool.tcpCandidates(of: stage.worker) == [SocketAddress(ipv4: 0x7f00_0001, port: 443)])
        #expect(stage.pool.sharedTCPPort != nil)
        let client = stage.client(port: stage.pool.sharedTCPPort)
        await stage.connect(client)
        #expect(client.transport.isConnected)
        #expect(await stage.pool.statistics().map(\.tcp.open) == [0, 0, 1])
        await stage.pool.stop()
    }

    @Test("F9: garbage, checks for nobody, and packets that are too long are counted, and their connections closed")
    func hostile() async throws {
        let stage = try await Stage()
        let garbage = stage.client(), unknown = stage.client(), long = stage.client()
        for _ in 0..<4 { garbage.sendFramed([UInt8](repeating: 0x80, count: 100)) }
        var check = unknown.check()
        // The user name begins behind the attribute's header, which follows the message's: another first letter is another peer's.
        let name = try #require(check.firstRange(of: Array(stage.peer.localICE.ufrag.utf8)))
        check[name.lowerBound] ^= 1
        for _ in 0..<4 { unknown.sendFramed(check) }
        long.send([0xff, 0xff, 1, 2, 3])
        let after = await stage.statistics { $0.tcp[.withoutCheck] == 2 && $0.tcp[.malformed] == 1 }
        #expect(after.tcp[.withoutCheck] == 2 && after.tcp[.malformed] == 1 && after.tcp.open == 0)
        #expect(after.drops[.unknownSource] == 4 && after.drops[.stunUnknownUfrag] == 4)
        for client in [garbage, unknown, long] {
            client.work()
            #expect(client.isClosed)
        }
        await stage.pool.stop()
    }

    @Test("F9: an unknown source's idle connections are bounded, and keep nobody else out")
    func idle() async throws {
        let stage = try await Stage()
        let known = stage.client()
        await stage.connect(known)
        let idle = (0..<70).map { _ in FramedClient.connected(stage.worker.port) }
        let after = await stage.statistics { $0.tcp.accepted == 71 }
        #expect(after.tcp[.refused] == 6 && after.tcp.open == 65)
        // Half a frame and half a check are no more than silence.
        idle[0].write([0, 100, 1])
        #expect(await stage.statistics(known) { _ in true }.tcp.open == 65)
        #expect(!known.isClosed)
        idle.forEach { $0.close() }
        #expect(await stage.statistics { $0.tcp.open == 1 }.tcp.open == 1)
        await stage.pool.stop()
    }

    @Test("F9: TCP has the numbers of the UDP ports, announced ones too; switched off, nobody listens")
    func candidates() async throws {
        let announced = SocketAddress(ipv4: 0xc000_0207, port: 40_000)
        let on = try MediaWorkerPoolTests.pool(workers: 2) { $0.advertisedAddresses = [announced] }
        #expect(on.workers.map { on.tcpCandidates(of: $0).map(\.port) } == [[40_000], [40_001]])
        await on.stop()
        // The number of one port may be that of some connection of another test at this moment, of eight it is not.
        var isFree = false
        for _ in 0..<8 where !isFree {
            let off = try MediaWorkerPoolTests.pool(workers: 1) { $0.acceptsTCP = false }
            #expect(off.tcpCandidates(of: off.workers[0]).isEmpty)
            isFree = (try? TCPSocket.listening(to: nil, port: off.workers[0].port, backlog: 1)) != nil
            await off.stop()
        }
        #expect(isFree)
    }
}

extension TCPSocket {
    fileprivate func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { _ = write($0) } }
}

import Cryptography
import Logging
import MediaControl
import MediaEngine
import MediaWorkers
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

/// The same service on real workers: threads, sockets and engines.
@Suite("Room service on real workers")
struct WorkerPoolTests {
    @Test("F1, F2: rooms spread over workers, answers name the worker's port and the configured address; all is freed")
    func realWorkers() async throws {
        var configuration = MediaWorkerConfiguration()
        configuration.workers = 2
        configuration.udpBasePort = 0
        configuration.advertisedAddresses = [SocketAddress(ipv4: 0xcb00_7107, port: 0)]
        // Nobody connects, and beside other tests this one may take longer than the 30 s that a peer has for it.
        configuration.engine.setupTimeout = .seconds(600)
        let pool = try MediaWorkerPool(
            configuration: configuration, certificate: Certificate.selfSigned(),
            logger: Logger("test", output: LogOutput(level: .error)))
        let service = RoomHost(media: WorkerPoolPlane(pool))
        let running = Task { await service.run() }
        let client = ClientDescriptions()
        var ports = Set<String>()
        for name in ["A", "B"] {
            let watcher = try await service.join(request("watcher", room: name))
            let session = try await service.joinPublisher(
                request("cam", room: name), offer: client.offer([.audio("0"), .video("1", rids: ["q", "h"])]))
            let candidates = session.answer.sdp.split(separator: "\r\n").filter { $0.hasPrefix("a=candidate:") }
            #expect(candidates.allSatisfy { $0.contains(" 203.0.113.7 ") })
            for port in pool.workers.map(\.port) where candidates.contains(where: { $0.contains(" \(port) typ host") })
            {
                ports.insert("\(port)")
            }
            let (connection, sdp) = try #require(await firstOffer(in: watcher.events))
            try await service.answer(watcher.session, connection: connection, sdp: client.answer(to: sdp))
            let report = try await service.report(onRoom: name)
            #expect(report.participants.map(\.tracks.count) == [0, 2])
            #expect(report.participants.map(\.subscriptions.count) == [2, 0])
        }
        #expect(ports.count == 2)
        var workers = await pool.statistics()
        #expect(
            workers.map(\.peers) == [2, 2] && workers.map(\.tracks) == [2, 2] && workers.map(\.subscriptions) == [2, 2])
        #expect(workers.allSatisfy { $0.commandsIgnored == 0 }, "\(workers.map(\.commandsIgnored))")
        await service.shutDown()
        workers = await pool.statistics()
        #expect(
            workers.map(\.rooms) == [0, 0] && workers.map(\.peers) == [0, 0] && workers.map(\.subscriptions) == [0, 0])
        #expect(workers.allSatisfy { $0.commandsIgnored == 0 }, "\(workers.map(\.commandsIgnored))")
        running.cancel()
        await pool.stop()
        await running.value
    }

    /// The room's size is announced by the clock, so that the offer is not always the event of the same number.
    private func firstOffer(in events: SessionEvents) async -> (connection: String, sdp: String)? {
        for await event in events {
            if case .offer(let connection, let sdp, _) = event.event { return (connection, sdp) }
        }
        return nil
    }
}

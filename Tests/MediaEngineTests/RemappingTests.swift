import MediaControl
import Primitives
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Peers whose NAT assigns them another port")
struct RemappingTests {
    @Test("B21: a publisher whose NAT assigns it another port is heard with its first packet from there")
    func remappedPublisher() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(10, keyframeFirst: true)
        stage.harness.run(for: .seconds(3))
        stage.film(10)
        stage.harness.run(for: .milliseconds(200))
        let viewer = stage.viewers[0], before = viewer.rtp.count
        stage.publisher.address.port += 1
        stage.film(1)
        #expect(viewer.rtp.count == before + 3)
        stage.film(30)
        #expect(stage.harness.events.contains(.peerMoved(stage.publisher.id)))
        #expect(stage.harness.engine.statistics.drops[.unknownSource] == 0)
        // Media from another host is not tried.
        let drops = stage.harness.engine.statistics.drops[.srtpAuthentication]
        stage.publisher.address = SocketAddress(ipv4: 0x0a00_ffff, port: 41_000)
        stage.film(1)
        #expect(stage.harness.engine.statistics.drops[.unknownSource] == 3)
        #expect(stage.harness.engine.statistics.drops[.srtpAuthentication] == drops)
    }

    @Test("More peers behind one address than are tried for one packet come in turn: all are heard")
    func office() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        var behaviour = ClientBehaviour()
        behaviour.keepsChecking = false
        let clients = (0..<41 as Range<UInt16>).map { index in
            harness.addClient(
                room: Session.room, behaviour: behaviour, at: SocketAddress(ipv4: 0x0a01_0001, port: 40_000 + index))
        }
        // Until then another address is a choice, not a move.
        harness.run(for: .milliseconds(3_500))
        let moved = Array(clients.suffix(8))
        for client in moved { client.address.port += 1_000 }
        var camera = VP8Encoder(ssrc: 0x100)
        // 80 packets a second, of the 100 that are tried.
        for _ in 0..<20 {
            let packet = camera.frame()[0]
            for client in moved { harness.send(packet, from: client) }
            harness.run(for: .milliseconds(100))
        }
        #expect(moved.allSatisfy { harness.events.contains(.peerMoved($0.id)) })
    }
}

import MediaControl
import Primitives
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
}

import MediaControl
import Primitives
import RTP
import Simulation
import Testing

@testable import MediaEngine

@Suite("Media that waited while the process was stopped")
struct LateMediaTests {
    @Test("Late media is dropped and counted; video continues with a keyframe, and no NACK is sent for it")
    func dropped() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(30, keyframeFirst: true)
        let viewer = stage.viewers[0], publisher = stage.publisher
        #expect(viewer.rtp.count == 90)
        stage.harness.isLate = true
        let asked = publisher.keyframeRequests.count
        stage.film(30)
        #expect(viewer.rtp.count == 90)
        #expect(stage.harness.engine.statistics.drops[.receivedLate] >= 90)
        stage.harness.isLate = false
        stage.film(1)
        stage.harness.run(for: .milliseconds(100))
        #expect(publisher.keyframeRequests.count > asked)
        #expect(!publisher.feedback.contains { if case .nack = $0.packet { true } else { false } })
        stage.film(10, keyframeFirst: true)
        #expect(viewer.rtp.count >= 120)
        for (before, after) in zip(viewer.rtp, viewer.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
    }

    @Test("Checks and handshakes are never late")
    func handshake() throws {
        let harness = try EngineHarness()
        harness.isLate = true
        harness.apply(.addRoom(Session.room))
        _ = harness.addClient(room: Session.room)
        #expect(harness.engine.statistics.drops[.receivedLate] == 0)
    }
}

import MediaControl
import Primitives
import RTP
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Ownership of addresses")
struct AddressTests {
    @Test(
        "A second session from the source port of a dead one connects at once; the dead one expires after its timeout")
    func sameSourcePort() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let first = harness.addClient(room: Session.room)
        first.transport.isKilled = true
        harness.clients.removeAll()
        let second = harness.addClient(room: Session.room, connect: false)
        second.address = first.address
        harness.run(for: .milliseconds(300))
        #expect(harness.events.contains(.peerConnected(second.id)))
        harness.run(for: .seconds(16))
        #expect(harness.events.contains(.peerEnded(first.id, .consentExpired)))
        // The end of the first takes nothing from the second.
        harness.apply(.addTrack(Session.video(1, of: second)))
        let viewer = harness.addClient(room: Session.room)
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        var camera = VP8Encoder(ssrc: 0x100)
        for packet in camera.frame(keyframe: true) { harness.send(packet, from: second) }
        #expect(viewer.rtp.count == 3)
    }

    @Test("Video that a slow connection holds back is not let go by another connection of its peer, but by its own")
    func otherConnection() throws {
        let stage = try FeedbackTests.Stage(viewers: 0)
        let harness = stage.harness
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = false
        let viewer = harness.addClient(room: Session.room, behaviour: behaviour)
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        stage.film(5, keyframeFirst: true)
        let main = viewer.address
        viewer.address = SocketAddress(ipv4: 0x0a01_0001, port: 40_001)
        let other = viewer.address
        viewer.transport.checkNow(at: harness.now)
        stage.film(1)
        viewer.address = main
        stage.film(1)
        harness.engine.holdVideo(to: main, at: harness.now)
        let before = viewer.rtp.count
        harness.engine.resumeVideo(to: other, at: harness.now)
        stage.film(5)
        harness.engine.connectionEnded(other, at: harness.now)
        stage.film(5)
        #expect(before > 0 && viewer.rtp.count == before)
        harness.engine.resumeVideo(to: main, at: harness.now)
        stage.film(5)
        #expect(viewer.rtp.count > before)
    }

    @Test("A slow connection that holds video back gets no padding either")
    func paddingOfSlowConnection() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        let harness = stage.harness, viewer = stage.viewers[0]
        stage.film(5, keyframeFirst: true)
        // Feedback about the first packet, and none after it: an outage, whose end padding would show.
        harness.sendRTCP(
            [0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 1, 0, 0x20, 1, 1, 0], from: viewer)
        stage.film(60)
        let before = viewer.rtp.count
        harness.run(for: .seconds(6))
        let padded = viewer.rtp.count
        harness.engine.holdVideo(to: viewer.address, at: harness.now)
        harness.run(for: .seconds(6))
        #expect(padded > before)
        #expect(viewer.rtp.count == padded)
    }

    @Test("A peer whose check comes from another peer's address takes nothing from it")
    func foreignAddress() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(5, keyframeFirst: true)
        let viewer = stage.viewers[0]
        let insider = stage.harness.addClient(room: Session.room)
        let own = insider.address
        insider.address = viewer.address
        for _ in 0..<10 {
            insider.transport.checkNow(at: stage.harness.now)
            stage.film(3)
        }
        insider.address = own
        #expect(viewer.rtp.count == 35 * 3)
        stage.harness.run(for: .seconds(30))
        stage.film(5)
        #expect(viewer.rtp.count == 40 * 3)
        #expect(!stage.harness.events.contains { if case .peerEnded = $0 { true } else { false } })
    }

    @Test(
        "A subscriber that stops answering checks is sent nothing, and starts with a keyframe and sender reports when it answers again; reports return after a pause of all that it receives, too"
    )
    func interrupted() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        var camera = VP8Encoder(ssrc: 0x100)
        func film(_ frames: Int) {
            for index in 0..<frames {
                for packet in camera.frame(keyframe: index == 0) { harness.send(packet, from: publisher) }
                harness.run(for: .milliseconds(33))
            }
        }
        var reports: Int {
            viewer.feedback.count { if case .senderReport(_) = $0.packet { true } else { false } }
        }
        film(30)
        #expect(viewer.rtp.count == 90)
        harness.sendRTCP(from: publisher) {
            $0.beginSenderReport(
                ssrc: 0x100, ntpTimestamp: 5_000 << 32, rtpTimestamp: camera.timestamp, packetCount: 1, octetCount: 1)
        }
        viewer.transport.isMute = true
        film(30 * 16)
        let count = viewer.rtp.count
        film(60)
        #expect(viewer.rtp.count == count)
        #expect(!harness.events.contains(.peerEnded(viewer.id, .consentExpired)), "its own checks keep it alive")
        let asked = publisher.keyframeRequests.count
        viewer.transport.isMute = false
        harness.run(for: .seconds(6))
        #expect(publisher.keyframeRequests.count > asked)
        let former = reports
        film(60)
        #expect(viewer.rtp.count == count + 180)
        #expect(reports > former)
        harness.apply(.setSubscriptionPaused(SubscriptionID(1), true))
        film(60)
        let paused = (packets: viewer.rtp.count, reports: reports)
        #expect(paused.packets == count + 180)
        harness.apply(.setSubscriptionPaused(SubscriptionID(1), false))
        film(60)
        #expect(viewer.rtp.count > paused.packets && reports > paused.reports)
    }
}

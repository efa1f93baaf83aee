import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Media through an engine, with real transports in virtual time")
struct ForwardingEndToEndTests {
    @Test("Audio reaches the subscriber under its own SSRC, payload type and extension ids")
    func audio() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room), bob = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.audio(1, of: alice)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob, kind: .audio)))
        var microphone = OpusEncoder(ssrc: 0x100)
        for _ in 0..<100 {
            harness.send(microphone.packet(), from: alice)
            harness.run(for: .milliseconds(20))
        }
        #expect(bob.rtp.count == 100)
        #expect(Set(bob.rtp.map(\.header.ssrc)) == [0xa000_0001])
        #expect(Set(bob.rtp.map(\.header.payloadType)) == [109])
        for (before, after) in zip(bob.rtp, bob.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
            #expect(after.header.timestamp == before.header.timestamp &+ 960)
        }
        #expect(bob.rtp[0].element(10) == [0x80 | 30])
        #expect(bob.rtp[0].element(9) == Array("s1".utf8))
        #expect(harness.events.contains(.subscriptionStarted(SubscriptionID(1))))
        #expect(harness.events.contains(.trackStarted(TrackID(1), .opus)))
    }

    @Test("E4: video starts at a requested keyframe; then every packet follows")
    func video() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room), bob = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: alice)))
        var camera = VP8Encoder(ssrc: 0x100)
        // A stream that has gone on for long before anybody watches.
        for index in 0..<60 {
            for packet in camera.frame(keyframe: index == 0) { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
        }
        let asked = alice.keyframeRequests.count
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob)))
        #expect(alice.keyframeRequests.count == asked + 1)
        for _ in 0..<5 {
            for packet in camera.frame() { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
        }
        #expect(bob.rtp.isEmpty)
        for index in 0..<30 {
            for packet in camera.frame(keyframe: index == 0) { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
        }
        #expect(bob.rtp.count == 90)
        #expect(bob.rtp[0].payload.dropFirst(6).first == 0)
        for (before, after) in zip(bob.rtp, bob.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        #expect(harness.engine.statistics.packetsForwarded == 90)
    }
}

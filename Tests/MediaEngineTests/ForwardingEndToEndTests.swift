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

    @Test(
        "Parameter sets that replace those of the description reach who receives the track already, with a keyframe that is requested"
    )
    func replacedSets() throws {
        let size: [UInt8] = [0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0x90, 0x0f, 0x08, 0x84, 0x6a]
        let pictures: [[UInt8]] = [[0x68, 0xce, 0x3c, 0x80], [0x68, 0xce, 0x38, 0x80]]
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room), bob = harness.addClient(room: Session.room)
        func format(_ payloadType: UInt8) -> PayloadFormat {
            PayloadFormat(
                codec: .h264, payloadType: payloadType, rtxPayloadType: nil, clockRateHz: 90_000, variant: "42e0")
        }
        func described(_ set: [UInt8]) -> TrackDescription {
            var track = Session.video(1, of: alice)
            track.formats = [format(96)]
            track.formats[0].parameterSets = [size, set]
            return track
        }
        var sequence: UInt16 = 0
        func send(_ isKeyframe: Bool) {
            let slice: [UInt8] = [isKeyframe ? 0x65 : 0x61, 0x88] + [UInt8](repeating: 1, count: 30)
            harness.send(
                TestPacket(
                    ssrc: 0x100, payloadType: 96, sequence: sequence, timestamp: UInt32(sequence) * 3_000, marker: true,
                    payload: slice
                ).bytes, from: alice)
            sequence += 1
            harness.run(for: .milliseconds(33))
        }
        harness.apply(.addTrack(described(pictures[0])))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob, codecs: [format(120)])))
        for index in 0..<60 { send(index == 0) }
        // The second time they are those in force: nothing changes.
        for areNew in [true, false] {
            let requests = alice.keyframeRequests.count
            harness.apply(.updateTrack(described(pictures[1])))
            #expect(alice.keyframeRequests.count == requests + (areNew ? 1 : 0))
            for index in 0..<60 { send(areNew && index == 5) }
        }
        func frames(_ kind: UInt8) -> Int {
            Set(bob.rtp.filter { $0.payload.first == kind }.map(\.header.timestamp)).count
        }
        let sets = bob.rtp.map(\.payload).filter { $0.first == 0x78 }
        #expect(frames(0x65) == 2 && frames(0x78) == 2)
        #expect(sets.first?.suffix(4).elementsEqual(pictures[0]) == true)
        #expect(sets.last?.suffix(4).elementsEqual(pictures[1]) == true)
        #expect(frames(0x61) == 59 + 54 + 60, "nothing between the description and its keyframe")
    }
}

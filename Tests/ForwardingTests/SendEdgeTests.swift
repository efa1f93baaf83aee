import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// Moments at which a subscription could be caught on the wrong foot, by bad luck or by a publisher that means harm.
@Suite("Send: edge cases of a subscription")
struct SendEdgeTests {
    // MARK: - Repeats on the media stream

    /// What leaves as a repeat on the media stream is what left first, or nothing: two texts under one SRTP index give the key away.
    private func expectSameBytes(_ harness: SendHarness, at now: MonotonicTime) -> [Bool] {
        harness.out.map { original in
            guard let repeated = harness.repeats(of: original.header.sequenceNumber, at: now) else { return false }
            #expect(repeated.bytes == original.bytes)
            return true
        }
    }

    @Test("A retransmission without RTX announces the same decode targets as the original")
    func announcedTargets() {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]),
            SendSession.subscription(
                formats: [PayloadFormat(codec: .av1, payloadType: 41, rtxPayloadType: nil, clockRateHz: 90_000)],
                rtx: false, extensions: [(.dependencyDescriptor, 9)], preference: .spatial(0)))
        // The same mask again, twice.
        for (number, descriptor) in [AV1Frame.structure, "c10002", "c10003", "c100044004", "c10005", "c10006"]
            .enumerated()
        {
            harness.turn([AV1Frame.packet(UInt16(number), descriptor)], at: at(Double(number) * 33))
        }
        #expect(harness.out.count == 6)
        #expect(harness.out[1].bytes != harness.out[4].bytes)
        #expect(expectSameBytes(harness, at: at(300)) == [false, false, false, true, true, true])
        // One that was overtaken changes what was announced since.
        harness.turn([AV1Frame.packet(8, "c10008")], at: at(310))
        harness.turn([AV1Frame.packet(7, "c1000740fc")], at: at(320))
        #expect(expectSameBytes(harness, at: at(500)).suffix(2) == [false, true])
        harness.turn([AV1Frame.packet(9, "c10009")], at: at(510))
        #expect(expectSameBytes(harness, at: at(700)).last == true)
    }

    @Test(
        "A keyframe whose first packet comes last leaves in force which decode targets a later packet said are active")
    func lateFirstPacket() throws {
        let harness = UplinkHarness()
        let track = try #require(
            harness.uplink.addTrack(
                SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]), at: at(0)))
        harness.receive(AV1Frame.packet(0, AV1Frame.structure), at: at(0))
        harness.receive(AV1Frame.packet(1, "c10002"), at: at(33))
        // A mask of the lowest spatial layer's targets, and behind it the packet of the keyframe that has the structure and all of them.
        harness.receive(AV1Frame.packet(3, "c10003401c"), at: at(70))
        let before = track.layer(0).pointee.descriptors.activeDecodeTargets
        harness.receive(AV1Frame.packet(2, AV1Frame.structure), at: at(90))
        #expect(before != 0x1ff && track.layer(0).pointee.descriptors.activeDecodeTargets == before)
    }

    @Test("The structure of an older keyframe that arrives late does not replace the newer one")
    func lateStructure() throws {
        let harness = UplinkHarness()
        let track = try #require(
            harness.uplink.addTrack(
                SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]), at: at(0)))
        // The same structure, its templates numbered from 30 instead of 0: the frame is of template 31.
        let newer = AV1Frame.structure.replacing("c10001c008", with: "df0005c3c8")
        let late = AV1Frame.packet(1, AV1Frame.structure)
        harness.receive(AV1Frame.packet(0, AV1Frame.structure), at: at(0))
        for number in 2..<5 as Range<UInt16> { harness.receive(AV1Frame.packet(number, "c1000\(number)"), at: at(50)) }
        harness.receive(AV1Frame.packet(5, newer), at: at(150))
        let before = try #require(track.stored(5 + 0x10000)).summary
        harness.receive(late, at: at(160))
        // Template 35 is of the second spatial layer.
        harness.receive(AV1Frame.packet(6, "e30006"), at: at(170))
        let after = try #require(track.stored(6 + 0x10000)).summary
        #expect(before.hasDescriptor && after.hasDescriptor)
        #expect(after.spatialLayer == 1)
    }

    @Test(
        "G2: descriptors stay as they came where a bound leaves all layers of the stream in, and announce fewer where it does not",
        arguments: [(2, "c10002"), (1, "c1000240fc"), (0, "c10002401c")])
    func boundAtTheTop(spatial: Int, expected: String) {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]),
            SendSession.subscription(
                formats: [PayloadFormat(codec: .av1, payloadType: 41, rtxPayloadType: nil, clockRateHz: 90_000)],
                rtx: false, extensions: [(.dependencyDescriptor, 9)], preference: .spatial(spatial)))
        for (number, descriptor) in [AV1Frame.structure, "c10002"].enumerated() {
            harness.turn([AV1Frame.packet(UInt16(number), descriptor)], at: at(Double(number) * 33))
        }
        #expect(harness.out.last?.extensions[9] == ClientCaptures.bytes(expected))
    }

    @Test("Of descriptors that one packet repeats, also broken ones, the first is read and sent, and no other")
    func repeatedDescriptor() throws {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]),
            SendSession.subscription(
                formats: [PayloadFormat(codec: .av1, payloadType: 41, rtxPayloadType: nil, clockRateHz: 90_000)],
                rtx: false, extensions: [(.dependencyDescriptor, 9)], preference: .spatial(0)))
        let structure = try #require(ClientCaptures.bytes(AV1Frame.structure))
        let frame = try #require(ClientCaptures.bytes("c10002"))
        harness.turn([AV1Frame.packet(0, AV1Frame.structure)], at: at(0))
        for (index, repeated) in [[[0], frame], [[0xff, 0xff, 0xff]], [structure, [1]]].enumerated() {
            let elements = [frame] + repeated + [frame]
            let packet = TestPacket(
                ssrc: 0x100, payloadType: 45, sequence: UInt16(index) + 1, timestamp: UInt32(index + 1) * 3_000,
                marker: true, payload: [0x10, 0x34, 0x61, 0xaa], extensions: elements.map { (12, $0) })
            harness.turn([packet.bytes], at: at(Double(index + 1) * 33))
            let out = try #require(harness.out.last)
            #expect(harness.out.count == index + 2)
            #expect(out.extensions.keys.sorted() == [9])
            #expect(out.extensions[9].map { Array($0.prefix(3)) } == frame)
            #expect(out.bytes.count < 60)
        }
    }

    @Test("A retransmission without RTX of cached parameter sets contains the same ones, not newer ones")
    func cachedSets() {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.h264]),
            SendSession.subscription(
                formats: [
                    PayloadFormat(
                        codec: .h264, payloadType: 125, rtxPayloadType: nil, clockRateHz: 90_000, variant: "42e0")
                ], rtx: false))
        var sequence: UInt16 = 10
        func send(_ units: [[UInt8]], at now: MonotonicTime) {
            let packets = units.enumerated().map { index, unit in
                TestPacket(
                    ssrc: 0x100, payloadType: 102, sequence: sequence &+ UInt16(index),
                    timestamp: UInt32(sequence) * 3_000,
                    marker: index == units.count - 1, payload: unit
                ).bytes
            }
            sequence += UInt16(units.count)
            harness.turn(packets, at: now)
        }
        let idr: [UInt8] = [0x65, 0x88] + [UInt8](repeating: 1, count: 30)
        let slice: [UInt8] = [0x61, 0x88] + [UInt8](repeating: 2, count: 30)
        harness.subscription.pointee.unbind(harness.track)
        send([SendCodecTests.sps, SendCodecTests.pps, idr], at: at(0))
        harness.subscription.pointee.bind(harness.track)
        send([idr], at: at(2_000))
        #expect(harness.out.count == 2)
        #expect(harness.out[0].payload.first == 0x78)
        #expect(expectSameBytes(harness, at: at(2_010)) == [true, true])
        var other = SendCodecTests.sps
        other[3] = 0x1e
        send([other, SendCodecTests.pps, idr], at: at(2_033))
        send([slice], at: at(2_066))
        #expect(harness.out.count == 6)
        #expect(expectSameBytes(harness, at: at(2_100)) == [false, true, true, true, true, true])
    }

    @Test("A retransmission without RTX has the extension ids of the original, not renegotiated ones")
    func renegotiated() {
        func description(_ orientation: UInt8) -> SubscriptionDescription {
            SendSession.subscription(rtx: false, extensions: [(.videoOrientation, orientation)])
        }
        let harness = SendHarness(SendSession.track(), description(3))
        var layer = VP8Encoder.simulcast()[0]
        layer.orientation = 2
        harness.turn(layer.frame(keyframe: true), at: at(0))
        harness.subscription.pointee.update(description(3), track: harness.track)
        #expect(expectSameBytes(harness, at: at(100)) == [true, true, true])
        harness.subscription.pointee.update(description(4), track: harness.track)
        harness.turn(layer.frame(keyframe: false), at: at(133))
        #expect(expectSameBytes(harness, at: at(300)) == [false, false, false, true, true, true])
    }

    // MARK: - Held packets

    @Test(
        "A8: the publisher changes within a frame to a codec that the subscriber cannot decode: no deadline remains"
    )
    func codecChangeWithinFrame() {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.vp9, SendSession.vp8]),
            SendSession.subscription(formats: [SendSession.vp9]))
        let lowest: [UInt8] = [0xac, 0x80, 1, 0, 1, 0x82, 0x49, 0x83, 0x42, 0, 0]
        harness.turn(
            [TestPacket(ssrc: 0x100, payloadType: 98, sequence: 1, timestamp: 0, payload: lowest).bytes], at: at(0))
        #expect(harness.out.isEmpty)
        #expect(harness.subscription.pointee.heldUntil == at(100))
        harness.turn([TestPacket(ssrc: 0x100, sequence: 3, timestamp: 3_000, marker: true).bytes], at: at(33))
        harness.endTurn(at: at(100))
        #expect(harness.subscription.pointee.heldUntil > at(100))
        // Back again: no hole, and no number twice.
        harness.turn(
            [
                TestPacket(ssrc: 0x100, payloadType: 98, sequence: 4, timestamp: 6_000, marker: true, payload: lowest)
                    .bytes
            ],
            at: at(200))
        harness.turn(
            [
                TestPacket(ssrc: 0x100, payloadType: 98, sequence: 5, timestamp: 9_000, marker: true, payload: lowest)
                    .bytes
            ],
            at: at(233))
        #expect(harness.out.count == 2)
        #expect(harness.out[1].header.sequenceNumber == harness.out[0].header.sequenceNumber &+ 1)
    }

    // MARK: - Switches

    /// A viewer of the lowest of three layers, all of which are sent.
    private func lowestOfThree() -> (SendHarness, [VP8Encoder]) {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(preference: .spatial(0)))
        var layers = VP8Encoder.simulcast()
        for index in 0..<3 { harness.turn(layers[index].frame(keyframe: true), at: at(0)) }
        harness.turn(layers.indices.flatMap { layers[$0].frame(keyframe: false) }, at: at(100))
        #expect(harness.layer == 0 && harness.out.count == 6)
        return (harness, layers)
    }

    @Test("A switch that waits for the end of a frame is abandoned when the layer's sequence numbers jump meanwhile")
    func sequenceJump() {
        var (harness, layers) = lowestOfThree()
        _ = harness.subscription.pointee.setPreference(.spatial(1), track: harness.track, at: at(200))
        let low = layers[0].frame(keyframe: true), high = layers[1].frame(keyframe: true)
        harness.turn([low[0]], at: at(198))
        harness.turn([high[0]], at: at(200))
        // Restarts of the numbering; all but the keyframe's first packet share a place in the history.
        let first = UInt16(high[0][2]) << 8 | UInt16(high[0][3])
        let run = (1...100).map { step in
            TestPacket(
                ssrc: layers[1].ssrc, sequence: first &+ 1 &+ UInt16(truncatingIfNeeded: 31_744 * step),
                timestamp: layers[1].timestamp
            ).bytes
        }
        harness.turn(run + [low[1], low[2]], at: at(210))
        #expect(harness.layer == 0, "a keyframe so far back is no beginning")
        #expect(harness.out.count == 9)
        harness.turn(layers[0].frame(keyframe: false), at: at(233))
        #expect(harness.signals.last?.contains(.wantsKeyframe) == true)
    }

    @Test("A bound on size shortens the age of a keyframe to start with, one on temporal layers alone does not")
    func replayAge() {
        let (harness, _) = lowestOfThree()
        let subscription = harness.subscription
        func replayAge(_ bound: LayerBound) -> TimeSpan {
            _ = subscription.pointee.setBound(bound, track: harness.track, at: at(200))
            return subscription.pointee.replayAge
        }
        #expect(replayAge(.unlimited) == .milliseconds(500))
        #expect(replayAge(.upTo(LayerPoint(spatial: 1, temporal: 2))) == .milliseconds(100))
        #expect(replayAge(.upTo(LayerPoint(spatial: .max, temporal: 0))) == .milliseconds(500))
    }

    @Test("E7: a switch that waits for the end of a frame is abandoned when its target changes")
    func targetChanges() {
        var (harness, layers) = lowestOfThree()
        _ = harness.subscription.pointee.setPreference(.spatial(2), track: harness.track, at: at(200))
        let low = layers[0].frame(keyframe: true), high = layers[2].frame(keyframe: true)
        harness.turn([low[0]], at: at(198))
        harness.turn(high, at: at(200))
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: 0, temporal: 7)), track: harness.track, at: at(201))
        harness.turn([low[1], low[2]], at: at(205))
        harness.turn(layers[0].frame(keyframe: false) + layers[2].frame(keyframe: false), at: at(233))
        #expect(harness.layer == 0)
        #expect(harness.out.count == 12)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors)")
        #expect(harness.signals.last?.contains(.wantsKeyframe) == false)
    }
}

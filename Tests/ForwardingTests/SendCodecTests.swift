import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Send: codecs")
struct SendCodecTests {
    // MARK: - H.264

    static let sps: [UInt8] = [0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0x90, 0x0f, 0x08, 0x84, 0x6a]
    static let pps: [UInt8] = [0x68, 0xce, 0x3c, 0x80]

    private struct H264Encoder {
        var ssrc: UInt32 = 0x100
        var sps = SendCodecTests.sps
        var sequence: UInt16 = 10
        var timestamp: UInt32 = 1_000

        mutating func packet(_ payload: [UInt8], marker: Bool) -> [UInt8] {
            defer { sequence &+= 1 }
            return TestPacket(
                ssrc: ssrc, payloadType: 102, sequence: sequence, timestamp: timestamp, marker: marker,
                payload: payload
            ).bytes
        }

        /// A picture of slices; each is a NAL unit of its own. first_mb_in_slice is 0 in the first only.
        mutating func picture(idr: Bool, slices: Int = 1, sets: Bool = false, delimited: Bool = false) -> [[UInt8]] {
            timestamp &+= 3_000
            var packets: [[UInt8]] = []
            if delimited { packets.append(packet([0x09, 0x10], marker: false)) }
            if sets {
                packets.append(packet(sps, marker: false))
                packets.append(packet(SendCodecTests.pps, marker: false))
            }
            for slice in 0..<slices {
                let head: [UInt8] = [idr ? 0x65 : 0x61, slice == 0 ? 0x88 : 0x48]
                packets.append(packet(head + [UInt8](repeating: UInt8(slice), count: 30), marker: slice == slices - 1))
            }
            return packets
        }
    }

    private func h264(
        _ format: PayloadFormat = SendSession.h264, layers: Int = 1, preference: LayerPreference = .best
    ) -> SendHarness {
        let accepted = PayloadFormat(
            codec: .h264, payloadType: 125, rtxPayloadType: 107, clockRateHz: 90_000, variant: "42e0")
        return SendHarness(
            SendSession.track(layers: layers, formats: [format]),
            SendSession.subscription(formats: [accepted], preference: preference))
    }

    @Test("E4: a late subscriber gets nothing until SPS, PPS and IDR arrive, and the SPS first")
    func parameterSetsFirst() {
        let harness = h264()
        var encoder = H264Encoder()
        for turn in 0..<5 { harness.turn(encoder.picture(idr: false, slices: 2), at: at(Double(turn) * 33)) }
        #expect(harness.out.isEmpty)
        harness.turn(encoder.picture(idr: true, slices: 2, sets: true), at: at(200))
        #expect(harness.out.count == 4)
        #expect(harness.out.first?.payload == Self.sps)
        harness.turn(encoder.picture(idr: false, slices: 2), at: at(233))
        #expect(harness.out.count == 6)
        #expect(harness.out.map(\.header.payloadType) == [125, 125, 125, 125, 125, 125])
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
    }

    @Test(
        "H4: where parameter sets begin a keyframe in packets of their own, what is missing behind it and kept no more asks for another, whether or not they are repeated",
        arguments: [[10], [10, 20]])
    func missingBehindSets(sets: [Int]) {
        let harness = h264()
        var encoder = H264Encoder()
        for turn in 0..<150 {
            harness.turn(
                encoder.picture(idr: turn == 10, slices: 2, sets: sets.contains(turn)), at: at(Double(turn) * 33))
        }
        #expect(harness.out.count == 280 + 2 * sets.count)
        for (index, needsKeyframe) in [(10, true), (harness.out.count - 1, false)] {
            _ = harness.repeats(of: harness.out[index].header.sequenceNumber, at: at(5_000))
            let isAsked = harness.subscription.pointee.consumeRepair()
            #expect(isAsked == needsKeyframe)
        }
    }

    @Test(
        "After a bound is lifted the next keyframe ends the need for one, whatever packet begins it",
        arguments: [(true, false), (true, true), (false, false), (false, true)])
    func liftedBound(sets: Bool, delimited: Bool) {
        let harness = h264()
        var encoder = H264Encoder()
        func send(idr: Bool, sets: Bool = false, _ milliseconds: Double) {
            harness.turn(
                encoder.picture(idr: idr, slices: 2, sets: sets, delimited: delimited), at: at(milliseconds))
        }
        // Where nothing was measured yet, the lowest layer is the bound.
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: 0, temporal: .max)), track: harness.track, at: at(0))
        send(idr: true, sets: true, 0)
        send(idr: false, 33)
        _ = harness.subscription.pointee.setBound(.present, track: harness.track, at: at(200))
        send(idr: false, 200)
        send(idr: true, sets: sets, 233)
        for turn in 0..<5 {
            send(idr: false, 266 + Double(turn) * 33)
            #expect(harness.signals.last?.contains(.wantsKeyframe) == false)
        }
        let needed = harness.subscription.pointee.setBound(.present, track: harness.track, at: at(500))
        #expect(!needed)
    }

    @Test("A bound that left nothing out, as of a stream without layers, is lifted without a keyframe")
    func liftedWithoutKeyframe() {
        let harness = h264()
        var encoder = H264Encoder()
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: 0, temporal: .max)), track: harness.track, at: at(0))
        harness.turn(encoder.picture(idr: true, sets: true), at: at(0))
        harness.turn(encoder.picture(idr: false), at: at(33))
        let needed = harness.subscription.pointee.setBound(.present, track: harness.track, at: at(200))
        #expect(!needed)
        harness.turn(encoder.picture(idr: false), at: at(200))
        #expect(harness.signals.last?.contains(.wantsKeyframe) == false)
        #expect(harness.out.count == 5)
        let cap = harness.subscription.pointee.spatialCap
        #expect(cap > 0)
    }

    @Test(
        "E5: with an encoder that sends parameter sets once, a late subscriber gets the cached ones ahead of the next IDR"
    )
    func cachedSets() throws {
        let harness = h264()
        var encoder = H264Encoder()
        harness.subscription.pointee.unbind(harness.track)
        harness.turn(encoder.picture(idr: true, sets: true), at: at(0))
        for turn in 1..<60 { harness.turn(encoder.picture(idr: false), at: at(Double(turn) * 33)) }
        harness.subscription.pointee.bind(harness.track)
        harness.turn(encoder.picture(idr: false), at: at(2_000))
        #expect(harness.out.isEmpty)
        harness.turn(encoder.picture(idr: true, slices: 3), at: at(2_033))
        harness.turn(encoder.picture(idr: false), at: at(2_066))
        #expect(harness.out.count == 5)
        let sets = try #require(harness.out.first)
        let length = { (bytes: [UInt8]) in [UInt8(0), UInt8(bytes.count)] + bytes }
        #expect(sets.payload == [0x78] + length(Self.sps) + length(Self.pps))
        #expect(sets.header.timestamp == harness.out[1].header.timestamp)
        #expect(!sets.header.marker)
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        let repeated = try #require(harness.repeats(of: sets.header.sequenceNumber, at: at(2_100)))
        #expect(Array(repeated.payload.dropFirst(2)) == sets.payload)
    }

    @Test("E5: parameter sets that stand in the description alone are sent ahead of the first IDR, and give the size")
    func describedSets() throws {
        var format = SendSession.h264
        format.parameterSets = [Self.sps, Self.pps]
        let harness = h264(format)
        var encoder = H264Encoder()
        harness.turn(encoder.picture(idr: true), at: at(0))
        harness.turn(encoder.picture(idr: false), at: at(33))
        #expect(harness.out.count == 3)
        let length = { (bytes: [UInt8]) in [UInt8(0), UInt8(bytes.count)] + bytes }
        #expect(harness.out.first?.payload == [0x78] + length(Self.sps) + length(Self.pps))
        let width = harness.track.layer(0).pointee.size.width
        #expect(width > 0)
    }

    @Test("Parameter sets in packets replace those of the description, and what is no parameter set is not kept")
    func setsInPackets() {
        var format = SendSession.h264
        let other: [UInt8] = [0x68, 0xce, 0x38, 0x80]
        format.parameterSets = [Self.sps, other, [0x65, 0x88], [0x78], []]
        let harness = h264(format)
        var encoder = H264Encoder()
        harness.turn(encoder.picture(idr: true, sets: true), at: at(0))
        #expect(harness.out.map(\.payload).prefix(2) == [Self.sps, Self.pps])
        let kept = harness.track.layer(0).pointee.parameterSets.sets.map(\.bytes)
        #expect(kept == [Self.sps, Self.pps])
    }

    @Test("Parameter sets of a later description replace those in force, unless it has the same ones as before")
    func setsOfLaterDescriptions() {
        let other: [UInt8] = [0x68, 0xce, 0x38, 0x80]
        let harness = h264()
        var encoder = H264Encoder()
        func kept(after sets: [[UInt8]]) -> [[UInt8]] {
            var format = SendSession.h264
            format.parameterSets = sets
            harness.uplink.updateTrack(SendSession.track(formats: [format]))
            return harness.track.layer(0).pointee.parameterSets.sets.map(\.bytes)
        }
        let described = kept(after: [Self.sps, other])
        harness.turn(encoder.picture(idr: true, sets: true), at: at(0))
        let repeated = kept(after: [Self.sps, other])
        let last = kept(after: [Self.pps, Self.sps, other])
        #expect(described == [Self.sps, other])
        #expect(repeated == [Self.sps, Self.pps], "those in packets are newer")
        #expect(last == [Self.sps, other])
    }

    @Test("E4: an IDR without known parameter sets starts no stream")
    func unknownSets() {
        let harness = h264()
        var encoder = H264Encoder()
        harness.turn(encoder.picture(idr: true), at: at(0))
        harness.turn(encoder.picture(idr: false), at: at(33))
        #expect(harness.out.isEmpty)
        #expect(harness.signals.last?.contains(.wantsKeyframe) == true)
    }

    @Test("E7: later slices of an IDR frame start no stream")
    func laterSlices() {
        let harness = h264()
        var encoder = H264Encoder()
        harness.subscription.pointee.unbind(harness.track)
        let picture = encoder.picture(idr: true, slices: 4, sets: true)
        harness.turn(Array(picture.prefix(4)), at: at(0))
        harness.subscription.pointee.bind(harness.track)
        // The rest comes after the newcomer, who is given the whole picture from its first packet on.
        harness.turn(Array(picture.dropFirst(4)), at: at(5))
        #expect(harness.out.count == 6)
        #expect(harness.out.first?.payload == Self.sps)
    }

    @Test("E7: a switch waits for the last slice of the current frame, and begins with the sets of the other layer")
    func switchBetweenSlices() {
        let harness = h264(layers: 2, preference: .spatial(0))
        // 1280 by 720.
        let largerSPS: [UInt8] = [0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x68, 0x05, 0x00, 0x5b, 0xa1, 0x00, 0x00, 0x03, 0x00]
        var small = H264Encoder(), large = H264Encoder(ssrc: 0x101, sps: largerSPS, sequence: 300, timestamp: 70_000)
        harness.turn(small.picture(idr: true, slices: 4, sets: true), at: at(0))
        harness.turn(large.picture(idr: true, slices: 4, sets: true), at: at(0))
        harness.turn(small.picture(idr: false, slices: 4), at: at(100))
        #expect(harness.out.count == 10)
        _ = harness.subscription.pointee.setPreference(.spatial(1), track: harness.track, at: at(190))
        let low = small.picture(idr: false, slices: 4), high = large.picture(idr: true, slices: 4, sets: true)
        harness.turn(Array(low[0..<2]), at: at(198))
        harness.turn(Array(high[0..<3]), at: at(200))
        #expect(harness.out.count == 12)
        harness.turn([low[2], high[3]], at: at(204))
        #expect(harness.out.count == 13)
        harness.turn([low[3], high[4], high[5]], at: at(206))
        #expect(harness.out.count == 20)
        #expect(harness.out.dropFirst(10).map(\.header.marker) == (0..<10).map { $0 == 3 || $0 == 9 })
        #expect(harness.out.dropFirst(14).first?.payload == largerSPS)
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
    }

    @Test("E8: frames whose times go back, as B frames do, are forwarded in their order with their bytes and times")
    func reordered() throws {
        let harness = h264()
        var encoder = H264Encoder()
        let places: [UInt32] = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8]
        for (turn, place) in places.enumerated() {
            // `picture` goes on by one frame.
            encoder.timestamp = 1_000 + 3_000 * place
            harness.turn(encoder.picture(idr: turn == 0, slices: 2, sets: turn == 0), at: at(Double(turn) * 33))
        }
        #expect(harness.out.count == 22)
        let first = try #require(harness.out.first).header
        let times: [UInt32] = harness.out.dropFirst(2).map { $0.header.timestamp &- first.timestamp }
        #expect(times == places.flatMap { [$0 * 3_000, $0 * 3_000] })
        let numbers: [UInt16] = harness.out.map { $0.header.sequenceNumber &- first.sequenceNumber }
        #expect(numbers == Array(0..<22))
        #expect(harness.out.dropFirst(4).allSatisfy { $0.payload.count == 32 && $0.payload[0] == 0x61 })
    }

    @Test("A8: a profile that the subscriber cannot decode is reported once and never sent")
    func otherProfile() {
        let accepted = PayloadFormat(
            codec: .h264, payloadType: 125, rtxPayloadType: 107, clockRateHz: 90_000, variant: "640c")
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.h264]), SendSession.subscription(formats: [accepted]))
        var encoder = H264Encoder()
        for turn in 0..<5 { harness.turn(encoder.picture(idr: true, sets: true), at: at(Double(turn) * 33)) }
        #expect(harness.out.isEmpty)
        #expect(harness.signals.filter { $0.contains(.noCommonCodec) }.count == 1)
        #expect(!harness.signals.contains { $0.contains(.wantsKeyframe) })
    }

    // MARK: - Audio

    private func audio(_ formats: [PayloadFormat], _ accepted: [PayloadFormat]) -> SendHarness {
        SendHarness(
            SendSession.track(kind: .audio, formats: formats, extensions: [(.audioLevel, 1)]),
            SendSession.subscription(kind: .audio, formats: accepted, rtx: false, extensions: [(.audioLevel, 2)]))
    }

    /// RED with one redundant block of 4 bytes and a primary of 6.
    private static let redPayload: [UInt8] =
        [0x80 | 111, 0x0f, 0x00, 0x04, 111] + [1, 2, 3, 4] + [0x78, 10, 11, 12, 13, 14]

    @Test("G7: RED is stripped to its primary block for a subscriber without RED")
    func redStripped() {
        let own = PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000)
        let harness = audio([SendSession.red, SendSession.opus], [own])
        var packet = TestPacket(ssrc: 0x100, payloadType: 63, sequence: 1, timestamp: 960, payload: Self.redPayload)
        packet.extensions = [(1, [0x1e])]
        harness.turn([packet.bytes], at: at(0))
        #expect(harness.out.count == 1)
        #expect(harness.out[0].payload == [0x78, 10, 11, 12, 13, 14])
        #expect(harness.out[0].header.payloadType == 109)
        #expect(harness.out[0].extensions[2] == [0x1e])
    }

    @Test("G7: RED is forwarded with the subscriber's payload types in its blocks; so is plain Opus between")
    func redPasses() {
        let own = [
            PayloadFormat(codec: .red, payloadType: 70, rtxPayloadType: nil, clockRateHz: 48_000),
            PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000),
        ]
        let harness = audio([SendSession.red, SendSession.opus], own)
        harness.turn(
            [TestPacket(ssrc: 0x100, payloadType: 63, sequence: 1, timestamp: 960, payload: Self.redPayload).bytes],
            at: at(0))
        harness.turn(
            [TestPacket(ssrc: 0x100, payloadType: 111, sequence: 2, timestamp: 1_920, payload: [0x78, 1]).bytes],
            at: at(20))
        #expect(harness.out.count == 2)
        #expect(harness.out[0].payload == [0x80 | 109, 0x0f, 0x00, 0x04, 109, 1, 2, 3, 4, 0x78, 10, 11, 12, 13, 14])
        #expect(harness.out.map(\.header.payloadType) == [70, 109])
    }

    @Test("A4: audio packets of 10 to 120 ms keep their timestamps")
    func packetTimes() {
        let own = PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000)
        let harness = audio([SendSession.opus], [own])
        var timestamp: UInt32 = 0xffff_ff00
        var expected: [UInt32] = []
        for (index, ticks) in [480, 960, 1_920, 2_880, 5_760, 480, 5_760].enumerated() {
            harness.turn(
                [
                    TestPacket(
                        ssrc: 0x100, payloadType: 111, sequence: UInt16(index), timestamp: timestamp,
                        payload: [0x78, 1]
                    ).bytes
                ],
                at: at(Double(index) * 60))
            expected.append(timestamp)
            timestamp &+= UInt32(ticks)
        }
        #expect(harness.out.map(\.header.timestamp) == expected)
    }

    @Test(
        "A malformed RED payload is sent unchanged or dropped, and never read beyond its end",
        arguments: [
            [UInt8](), [0x80], [0xef, 0, 0], [0xef, 0, 0x03, 0xff, 0x6f], [UInt8](repeating: 0xff, count: 60),
        ])
    func brokenRED(payload: [UInt8]) {
        var mapping = FormatMapping(of: SendSession.red, among: [SendSession.opus])
        let output = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 8)
        defer { output.deallocate() }
        payload.withUnsafeBytes { bytes in
            #expect(REDPayload.write(bytes, mapping: mapping, into: output) <= payload.count)
            mapping.stripsRED = false
            #expect(REDPayload.write(bytes, mapping: mapping, into: output) == payload.count)
        }
    }
}

import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Send: packets byte for byte")
struct SendGoldenTests {
    /// Everything a publisher may send, with ids 1 to 14 in the order of the table.
    private static let published: [(HeaderExtension, UInt8)] = [
        (.mid, 1), (.rid, 2), (.audioLevel, 4), (.absoluteSendTime, 5), (.transportSequence, 6), (.videoOrientation, 7),
        (.playoutDelay, 8), (.videoContentType, 9), (.transmissionOffset, 10), (.absoluteCaptureTime, 11),
        (.dependencyDescriptor, 12), (.videoLayersAllocation, 13),
    ]

    private static func packet(_ elements: [(UInt8, [UInt8])], layer: inout VP8Encoder) -> [UInt8] {
        let bytes = layer.frame(keyframe: true, packets: 1)[0]
        var packet = TestPacket(
            ssrc: layer.ssrc, sequence: layer.sequence &- 1, timestamp: layer.timestamp, marker: true)
        packet.payload = Array(bytes[12...].prefix(16))
        packet.extensions = elements
        return packet.bytes
    }

    private static let elements: [(UInt8, [UInt8])] = [
        (1, Array("pub".utf8)), (2, Array("q".utf8)), (5, [1, 2, 3]), (6, [9, 9]), (7, [0x03]),
        (8, [0x01, 0x20, 0x30]),
        (9, [0x01]), (10, [0, 0, 9]), (11, [0xe8, 0, 0, 1, 0x80, 0, 0, 0]), (12, [0x80, 0x01, 0x00]),
        (13, [0x10, 0x20]),
    ]

    private func written(
        _ subscribed: [(HeaderExtension, UInt8)], _ elements: [(UInt8, [UInt8])] = Self.elements, layers: Int = 1,
        mid: String = "s", playoutDelay: PlayoutDelayBounds? = nil
    ) -> WrittenPacket {
        var subscription = SendSession.subscription(mid: mid, extensions: subscribed)
        subscription.playoutDelay = playoutDelay
        let harness = SendHarness(SendSession.track(layers: layers, extensions: Self.published), subscription)
        var layer = VP8Encoder.simulcast()[0]
        harness.turn([Self.packet(elements, layer: &layer)], at: MonotonicTime(nanoseconds: 1_500_000_000))
        precondition(harness.out.count == 1)
        return harness.out[0]
    }

    @Test("A room's playout delay is written once, in place of the publisher's, and only where it was negotiated")
    func playoutDelay() {
        let bounds = PlayoutDelayBounds(minimum: .milliseconds(120), maximum: .milliseconds(4_000))
        let packet = written([(.playoutDelay, 9), (.videoOrientation, 10)], playoutDelay: bounds)
        // 12 and 400 steps of 10 ms: 0x00c and 0x190.
        #expect(packet.extensions[9] == [0x00, 0xc1, 0x90] && packet.extensions[10] == [0x03])
        #expect(written([(.playoutDelay, 9)]).extensions[9] == [0x01, 0x20, 0x30], "the publisher's")
        #expect(written([(.videoOrientation, 10)], playoutDelay: bounds).extensions[9] == nil)
    }

    @Test("G2: every extension has the subscriber's id, and is copied or rewritten as its specification requires")
    func allExtensions() {
        let packet = written([
            (.mid, 14), (.rid, 13), (.absoluteSendTime, 12), (.transportSequence, 11), (.videoOrientation, 10),
            (.playoutDelay, 9), (.videoContentType, 8), (.transmissionOffset, 7), (.absoluteCaptureTime, 6),
            (.dependencyDescriptor, 5), (.videoLayersAllocation, 4),
        ])
        let found = packet.extensions
        #expect(found[14] == Array("s".utf8), "mid is the subscriber's")
        #expect(found[13] == nil, "rid belongs to the publisher's hop")
        #expect(found[12] == [0x06, 0x00, 0x00], "1.5 s in 6.18 fixed point")
        #expect(found[11] == [0x00, 0x01], "the subscriber's own transport-wide number")
        #expect(found[10] == [0x03])
        #expect(found[9] == [0x01, 0x20, 0x30])
        #expect(found[8] == [0x01])
        #expect(found[7] == nil, "the transmission offset was the publisher's")
        #expect(found[6] == [0xe8, 0, 0, 1, 0x80, 0, 0, 0])
        #expect(found[5] == [0x80, 0x01, 0x00])
        #expect(found[4] == [0x10, 0x20], "one stream: the allocation is true behind the server too")
        #expect(packet.bytes[12] == 0xbe && packet.bytes[13] == 0xde)
    }

    @Test("G2: the golden packet")
    func golden() {
        let packet = written([(.mid, 4), (.absoluteSendTime, 2), (.transportSequence, 3), (.videoOrientation, 13)])
        let sequence = packet.header.sequenceNumber
        let number = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)].hexadecimal
        // V X, M 120, sequence, timestamp, SSRC.
        let header = "90f8" + number + "ffff0bb8" + "cafe0001"
        // Send time, number, mid "s", orientation, padding.
        let extensions = "bede0003" + "22060000" + "310001" + "4073" + "d003" + "00"
        #expect(packet.bytes.hexadecimal == header + extensions + "90f0ffbdfb0100" + "00009d012a4001b400")
    }

    @Test("Extensions that the subscriber did not negotiate are not sent; without any there is no extension block")
    func none() {
        let packet = written([])
        #expect(packet.header.extensionLength == 0)
        #expect(packet.bytes[0] == 0x80)
        #expect(packet.header.payloadOffset == 12)
    }

    @Test("G2: an id above 14 makes the extension block two-byte", arguments: [UInt8(14), 15, 16, 200])
    func twoByte(id: UInt8) {
        let packet = written([(.videoOrientation, id), (.mid, 1)], mid: "0123456789abcdef")
        #expect(packet.extensions[id] == [0x03])
        #expect(packet.extensions[1] == Array("0123456789abcdef".utf8))
        #expect(packet.bytes[12] == (id > 14 ? 0x10 : 0xbe))
    }

    @Test(
        "G2: an empty value and one of more than 16 bytes make the extension block two-byte, if the subscriber gets them",
        arguments: [(0, true), (1, false), (16, false), (17, true), (255, true)])
    func longValue(length: Int, isTwoByte: Bool) {
        let value = (0..<length).map { UInt8(truncatingIfNeeded: $0 + 1) }
        let packet = written(
            [(.mid, 1), (.videoOrientation, 2), (.videoLayersAllocation, 4)], [(13, value), (7, [3])])
        #expect(packet.extensions == [1: Array("s".utf8), 2: [3], 4: value])
        #expect(packet.bytes[12...13].elementsEqual(isTwoByte ? [0x10, 0x00] : [0xbe, 0xde]))
        #expect(packet.header.payloadLength == 16)
        #expect(written([(.mid, 1), (.videoOrientation, 2)], [(13, value), (7, [3])]).bytes[12] == 0xbe)
    }

    @Test("G2: AV1's structure is in a two-byte block, byte for byte, and the descriptors after it are not")
    func structure() {
        let harness = SendHarness(
            SendSession.track(formats: [SendSession.av1], extensions: [(.dependencyDescriptor, 12)]),
            SendSession.subscription(
                formats: [PayloadFormat(codec: .av1, payloadType: 41, rtxPayloadType: 42, clockRateHz: 90_000)],
                mid: "s",
                extensions: [(.absoluteSendTime, 2), (.transportSequence, 3), (.mid, 4), (.dependencyDescriptor, 9)]))
        for (number, descriptor) in [AV1Frame.structure, "c10002"].enumerated() {
            harness.turn(
                [AV1Frame.packet(UInt16(number), descriptor)],
                at: MonotonicTime(nanoseconds: 1_500_000_000 + 33_000_000 * Int64(number)))
        }
        // Send time, number, mid "s", 97 bytes of structure, padding: 28 words.
        let block = "1000001c" + "0203060000" + "03020001" + "040173" + "0961"
        let structure = AV1Frame.structure.filter { $0 != "\n" } + "00"
        #expect(harness.out[0].bytes[12..<128].hexadecimal == block + structure)
        #expect(harness.out[1].bytes[12...13].elementsEqual([0xbe, 0xde]))
        #expect(harness.out[1].extensions[9] == [0xc1, 0x00, 0x02])
    }

    @Test("With simulcast the layers allocation describes streams that the subscriber does not receive: not sent")
    func allocationOfSimulcast() {
        #expect(written([(.videoLayersAllocation, 4)], layers: 3).extensions[4] == nil)
    }

    @Test("abs-capture-time: the clock offset becomes relative to the server's clock, the capture time does not change")
    func captureOffset() {
        let harness = SendHarness(
            SendSession.track(extensions: [(.absoluteCaptureTime, 11)]),
            SendSession.subscription(extensions: [(.absoluteCaptureTime, 2)]))
        harness.subscription.pointee.captureOffset = 0x10_0000_0000
        var layer = VP8Encoder.simulcast()[0]
        let value: [UInt8] = [0xe8, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0]
        harness.turn([Self.packet([(11, value)], layer: &layer)], at: at(0))
        #expect(harness.out[0].extensions[2] == [0xe8, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0])
    }

    @Test("B6, A13: the orientation of each frame arrives with that frame, across layer switches")
    func orientation() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription())
        var layers = VP8Encoder.simulcast()
        var expected: [UInt8] = []
        for turn in 0..<60 {
            let orientation = UInt8(turn % 8)
            for index in 0..<3 { layers[index].orientation = orientation }
            if turn % 10 == 9 {
                _ = harness.subscription.pointee.setPreference(
                    .spatial(turn / 10 % 3), track: harness.track, at: at(Double(turn) * 33))
            }
            harness.turn(
                layers.indices.flatMap { layers[$0].frame(keyframe: turn % 10 == 0) }, at: at(Double(turn) * 33))
            expected.append(orientation)
        }
        #expect(harness.totals.switches >= 4)
        // At a switch the same picture may come in both layers, and a waiting switch may skip none.
        var shown = harness.out.filter { $0.header.marker }.compactMap { $0.extensions[3]?.first }
        var index = 1
        while index < shown.count {
            if shown[index] == shown[index - 1] { shown.remove(at: index) } else { index += 1 }
        }
        #expect(shown == expected)
        #expect(harness.out.filter { !$0.header.marker }.allSatisfy { $0.extensions[3] == nil })
    }

    @Test("A13: a frame without a tag is forwarded without one, whatever tags came before it; a tag of 0 is kept")
    func untagged() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        let tags: [UInt8?] = [nil, 1, nil, nil, 6, 0, nil]
        for (turn, tag) in tags.enumerated() {
            layer.orientation = tag
            harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33))
        }
        let shown = harness.out.filter { $0.header.marker }.map { $0.extensions[3]?.first }
        #expect(shown == tags)
    }
}

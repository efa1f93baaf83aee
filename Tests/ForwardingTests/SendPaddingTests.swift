import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// Probes of a subscriber that takes no RTX: padding under the stream's own numbers.
@Suite("Padding between frames")
struct SendPaddingTests {
    private func begun() -> (SendHarness, VP8Encoder) {
        let harness = SendHarness(SendSession.track(), Self.withoutRTX)
        var layer = VP8Encoder.simulcast()[0]
        for turn in 0..<3 { harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33)) }
        return (harness, layer)
    }

    private static var withoutRTX: SubscriptionDescription {
        var format = SendSession.subscribedVP8
        format.rtxPayloadType = nil
        return SendSession.subscription(formats: [format], rtx: false, extensions: [(.transportSequence, 5)])
    }

    private func media(_ harness: SendHarness) -> [WrittenPacket] { harness.out.filter { $0.header.payloadLength > 0 } }

    private func hasNoHole(_ packets: [WrittenPacket]) -> Bool {
        let numbers = packets.map(\.header.sequenceNumber)
        return zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 }
    }

    @Test("Padding gets the next sequence numbers; frame numbers continue without a jump")
    func between() {
        let (harness, source) = begun()
        var layer = source
        #expect(harness.subscription.pointee.canProbe && !harness.subscription.pointee.padsBeside)
        for turn in 0..<40 {
            for _ in 0..<(turn % 4) { #expect(harness.probe(at: at(100 + Double(turn) * 33))) }
            harness.turn(layer.frame(keyframe: turn == 20), at: at(110 + Double(turn) * 33))
        }
        #expect(hasNoHole(harness.out))
        let pictures = media(harness).map(\.pictureID)
        #expect(zip(pictures, pictures.dropFirst()).allSatisfy { $1 == $0 || $1 == ($0 + 1) & 0x7fff })
        let padding = harness.out.filter { $0.header.payloadLength == 0 }
        #expect(padding.count == 60)
        #expect(padding.allSatisfy { $0.bytes.count > 200 && $0.bytes.count < 260 && !$0.header.marker })
    }

    @Test("No padding is sent within a frame")
    func withinFrame() {
        let (harness, source) = begun()
        var layer = source
        let packets = layer.frame(keyframe: false)
        harness.turn(Array(packets.dropLast()), at: at(100))
        #expect(!harness.probe(at: at(101)))
        harness.turn(Array(packets.suffix(1)), at: at(102))
        #expect(harness.probe(at: at(103)))
        #expect(hasNoHole(harness.out))
    }

    @Test("Packets that the publisher's network lost or delays keep their numbers ahead of and behind padding")
    func late() {
        let (harness, source) = begun()
        var layer = source
        let first = layer.frame(keyframe: false), second = layer.frame(keyframe: false)
        harness.turn([first[0], first[2]], at: at(100))
        #expect(harness.probe(at: at(101)))
        harness.turn([second[1], second[2]], at: at(133))
        harness.turn([first[1], second[0]], at: at(150))
        let numbers = harness.out.map(\.header.sequenceNumber).sorted { Int16(bitPattern: $0 &- $1) < 0 }
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
        #expect(Set(numbers).count == harness.out.count)
    }

    @Test("A retransmission of padding is byte for byte the same: other bytes under its number would reveal keystream")
    func repeated() throws {
        let (harness, _) = begun()
        #expect(harness.probe(at: at(100)))
        let padding = try #require(harness.out.last)
        let repeated = try #require(harness.repeats(of: padding.header.sequenceNumber, at: at(200)))
        #expect(repeated.bytes == padding.bytes)
    }

    @Test("Padding while the video is withheld, before it starts, and across a stop")
    func withoutVideo() {
        let harness = SendHarness(SendSession.track(), Self.withoutRTX)
        #expect(!harness.probe(at: at(0)), "nothing is known of its time")
        _ = harness.subscription.pointee.setBound(.nothing, track: harness.track, at: at(0))
        var layer = VP8Encoder.simulcast()[0]
        harness.turn(layer.frame(keyframe: true), at: at(10))
        #expect(harness.out.isEmpty)
        for _ in 0..<5 { #expect(harness.probe(at: at(20))) }
        _ = harness.subscription.pointee.setBound(.unlimited, track: harness.track, at: at(30))
        harness.turn(layer.frame(keyframe: true), at: at(43))
        #expect(media(harness).count == 3)
        _ = harness.subscription.pointee.setBound(.nothing, track: harness.track, at: at(50))
        for _ in 0..<5 { #expect(harness.probe(at: at(60))) }
        _ = harness.subscription.pointee.setBound(.unlimited, track: harness.track, at: at(70))
        harness.turn(layer.frame(keyframe: true), at: at(76))
        #expect(media(harness).count == 6)
        #expect(hasNoHole(harness.out))
        let times = harness.out.map(\.header.timestamp)
        #expect(zip(times, times.dropFirst()).allSatisfy { Int32(bitPattern: $1 &- $0) >= 0 })
    }
}

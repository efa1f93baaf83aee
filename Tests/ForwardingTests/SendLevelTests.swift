import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// Packets of one length leave in one call of the kernel; a few bytes of padding make them so.
@Suite("Levelling of packet sizes")
struct SendLevelTests {
    @Test(
        "G1: packets whose sizes differ by up to 16 bytes get one size, others keep theirs; payloads, numbers and marker bits are unchanged",
        arguments: [
            ([300, 299, 299, 298], [0, 1, 1, 2]),
            ([300, 300, 300], [0, 0, 0]),
            ([300, 284, 300, 100], [0, 16, 0, 0]),
            ([300, 283], [0, 0]),
            ([290, 300, 295], [10, 0, 5]),
            ([300], [0]),
            ([100, 300, 299, 100], [0, 0, 1, 0]),
        ])
    func pads(sizes: [Int], wanted: [Int]) throws {
        var camera = VP8Encoder.simulcast()[2]
        let level = SendHarness(SendSession.track(), SendSession.subscription())
        let plain = SendHarness(SendSession.track(), SendSession.subscription())
        level.levelsSizes = true
        for index in 0..<3 {
            let packets = camera.frame(keyframe: index == 0, sizes: sizes)
            let now = MonotonicTime(milliseconds: 1_000 + Int64(index) * 33)
            level.turn(packets, at: now)
            plain.turn(packets, at: now)
        }
        #expect(level.out.count == sizes.count * 3)
        for (one, other) in zip(level.out, plain.out) {
            #expect(one.payload == other.payload)
            #expect(one.header.sequenceNumber == other.header.sequenceNumber)
            #expect(one.header.timestamp == other.header.timestamp)
            #expect(one.header.marker == other.header.marker)
            #expect(one.extensions == other.extensions)
        }
        #expect(level.out.map(\.header.paddingLength) == wanted + wanted + wanted)
        #expect(level.totals.payloadBytes == plain.totals.payloadBytes, "sender reports count no padding")
    }

    @Test("A header extension in only one packet of a frame does not make it longer than the others")
    func extensions() {
        var camera = VP8Encoder.simulcast()[2]
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        harness.levelsSizes = true
        camera.orientation = 3
        harness.turn(camera.frame(keyframe: true, sizes: [300, 300, 300]), at: MonotonicTime(milliseconds: 1_000))
        #expect(harness.padded == 2)
        #expect(Set(harness.out.map(\.bytes.count)).count == 1)
        #expect(harness.out.last?.extensions.values.contains([3]) == true)
    }

    @Test("A retransmission on the media stream is byte for byte the same packet; one in RTX has no padding")
    func repeats() throws {
        for rtx in [false, true] {
            var camera = VP8Encoder.simulcast()[2]
            let harness = SendHarness(SendSession.track(), SendSession.subscription(rtx: rtx))
            harness.levelsSizes = true
            harness.turn(camera.frame(keyframe: true, sizes: [300, 299, 298]), at: MonotonicTime(milliseconds: 1_000))
            let padded = harness.out[2]
            #expect(padded.header.paddingLength == 2)
            let repeated = try #require(
                harness.repeats(of: padded.header.sequenceNumber, at: MonotonicTime(milliseconds: 1_100)))
            if rtx {
                #expect(Array(repeated.payload.dropFirst(2)) == padded.payload)
                #expect(repeated.header.paddingLength == 0)
            } else {
                #expect(repeated.bytes == padded.bytes)
            }
        }
    }
}

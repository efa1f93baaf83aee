import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// What becomes of a larger video when the path allows a smaller one only.
@Suite("Switching down from a larger layer")
struct SendLeavingTests {
    /// A viewer of the largest of three layers, with some frames of it sent.
    private func begun() -> (SendHarness, [VP8Encoder]) {
        let formats = [PayloadFormat(codec: .vp8, payloadType: 120, rtxPayloadType: 121, clockRateHz: 90_000)]
        let harness = SendHarness(
            SendSession.track(layers: 3), SendSession.subscription(formats: formats, rtx: true))
        var layers = VP8Encoder.simulcast()
        // The smallest is the first that is seen.
        for turn in -6..<4 {
            frame(of: &layers, keyframe: turn == -6 || turn == 0, harness, at: 200 + Double(turn) * 33)
        }
        return (harness, layers)
    }

    /// A frame of all layers.
    private func frame(
        of layers: inout [VP8Encoder], keyframe: Bool, _ harness: SendHarness, at milliseconds: Double
    ) {
        for index in layers.indices {
            harness.turn(layers[index].frame(keyframe: keyframe), at: at(milliseconds + Double(index)))
        }
    }

    private func bound(_ rank: Int?, _ harness: SendHarness, at milliseconds: Double) -> Bool {
        let bound = rank.map { LayerBound.upTo(LayerPoint(spatial: $0, temporal: 3)) } ?? .unlimited
        return harness.subscription.pointee.setBound(bound, track: harness.track, at: at(milliseconds))
    }

    @Test("H2: once the smaller layer has started, the larger one is no longer retransmitted, and the smaller one is")
    func notRetransmitted() throws {
        var (harness, layers) = begun()
        #expect(harness.layer == 2)
        let large = try #require(harness.out.last).header.sequenceNumber
        #expect(bound(0, harness, at: 340))
        frame(of: &layers, keyframe: false, harness, at: 350)
        #expect(harness.repeats(of: large, at: at(360)) != nil, "until then it is all there is")
        frame(of: &layers, keyframe: true, harness, at: 383)
        #expect(harness.layer == 0)
        let small = try #require(harness.out.last).header.sequenceNumber
        #expect(
            harness.subscription.pointee.requestRepeat(
                large, of: harness.track, roundTrip: .milliseconds(50), at: at(500))
                == .dropped(.retransmissionTooOld))
        #expect(harness.repeats(of: small, at: at(500)) != nil)
    }

    @Test("After a switch up, earlier packets are retransmitted: they are shown until the larger keyframe is complete")
    func retransmittedAfterRise() throws {
        var (harness, layers) = begun()
        _ = bound(0, harness, at: 340)
        frame(of: &layers, keyframe: true, harness, at: 350)
        frame(of: &layers, keyframe: false, harness, at: 383)
        let small = try #require(harness.out.last).header.sequenceNumber
        _ = bound(nil, harness, at: 390)
        frame(of: &layers, keyframe: true, harness, at: 416)
        #expect(harness.layer == 2)
        #expect(harness.repeats(of: small, at: at(500)) != nil)
    }

    @Test("H2: on a full path the larger layer ends with its frame, before the smaller one's keyframe; no frame is cut")
    func endsAtOnce() {
        var (harness, layers) = begun()
        let last = layers[2].frame(keyframe: false, packets: 4)
        harness.turn(Array(last[..<2]), at: at(332))
        let before = harness.out.count
        #expect(bound(0, harness, at: 333))
        harness.subscription.pointee.endLarger(harness.track)
        harness.turn(Array(last[2...]), at: at(334))
        #expect(harness.out.count == before + 2, "its frame is ended")
        #expect(harness.layer == nil)
        frame(of: &layers, keyframe: false, harness, at: 366)
        #expect(harness.out.count == before + 2, "and no further one begun")
        #expect(harness.signals.last?.contains(.wantsKeyframe) == true)
        frame(of: &layers, keyframe: true, harness, at: 399)
        #expect(harness.layer == 0)
        #expect(harness.totals.switches == 2, "up to the largest, and down")
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors)")
        let large = harness.out[before].header.sequenceNumber
        #expect(
            harness.subscription.pointee.requestRepeat(
                large, of: harness.track, roundTrip: .milliseconds(50), at: at(500))
                == .dropped(.retransmissionTooOld))
    }

    @Test("A layer that was to end within a frame and is selected again continues without a keyframe")
    func continues() {
        var (harness, layers) = begun()
        let last = layers[2].frame(keyframe: false, packets: 4)
        harness.turn(Array(last[..<2]), at: at(332))
        _ = bound(0, harness, at: 333)
        harness.subscription.pointee.endLarger(harness.track)
        _ = bound(nil, harness, at: 334)
        harness.turn(Array(last[2...]), at: at(335))
        #expect(harness.layer == 2)
        let before = harness.out.count
        frame(of: &layers, keyframe: false, harness, at: 366)
        #expect(harness.layer == 2)
        #expect(harness.out.count > before)
    }

    @Test("No layer ends unless a smaller layer is selected, or where there is one stream only")
    func keeps() {
        let (harness, _) = begun()
        _ = bound(2, harness, at: 340)
        harness.subscription.pointee.endLarger(harness.track)
        #expect(harness.layer == 2)
        let single = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        single.turn(layer.frame(keyframe: true), at: at(0))
        single.subscription.pointee.endLarger(single.track)
        #expect(single.layer == 0)
    }
}

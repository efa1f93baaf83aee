import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Forwarding

@Suite("Rates of streams")
struct ReceiveRateTests {
    @Test(
        "A11: a frame every one to three seconds is a slow stream with a rate above zero at any time",
        arguments: [1.0, 2, 3])
    func slow(spacing: Double) {
        var meter = RateMeter()
        for millisecond in 0..<30_000 {
            let now = at(1_000 + Double(millisecond))
            // Ten packets of 1,000 bytes, 5 ms apart.
            let place = millisecond % Int(spacing * 1_000)
            if place < 50, place % 5 == 0 { meter.add(1_000, at: now) }
            guard millisecond > Int(spacing * 1_000) + 60 else { continue }
            let rate = meter.steadyPerSecond(at: now, eighths: 15) * spacing
            #expect(rate > 8_500 && rate < 11_500, "\(millisecond) ms")
        }
        // It ends.
        #expect(meter.perSecond(at: at(36_000)) == 0)
    }

    @Test("A stream that becomes fast, or resumes after a pause, is measured as a fast one")
    func changes() {
        var meter = RateMeter()
        for picture in 0..<5 { meter.add(10_000, at: at(1_000 + Double(picture) * 2_000)) }
        #expect(abs(meter.perSecond(at: at(10_500)) - 5_000) < 300)
        // 30 a second of 1,000 bytes.
        for picture in 0..<60 { meter.add(1_000, at: at(11_000 + Double(picture) * 33.3)) }
        #expect(abs(meter.perSecond(at: at(13_000)) - 30_000) < 3_500)
        // A second and a half without anything is a gap in a fast stream.
        #expect(meter.perSecond(at: at(14_300)) == 0)
        for picture in 0..<60 { meter.add(1_000, at: at(14_500 + Double(picture) * 33.3)) }
        #expect(abs(meter.perSecond(at: at(16_500)) - 30_000) < 3_500)
    }

    @Test("Before its data, and before the data that follows a pause, a stream has no rate")
    func earlier() {
        var meter = RateMeter()
        for picture in 0..<30 { meter.add(1_000, at: at(1_000 + Double(picture) * 33.3)) }
        #expect(meter.perSecond(at: at(500)) == 0 && meter.steadyPerSecond(at: at(500), eighths: 15) == 0)
        meter.add(1_000, at: at(4_500))
        #expect(meter.perSecond(at: at(2_000)) == 0 && meter.steadyPerSecond(at: at(2_000), eighths: 15) == 0)
        #expect(meter.perSecond(at: at(4_500)) > 0)
    }

    @Test("A layer that resumes after a pause with a repair is compared with another that stopped")
    func resumedByRepair() throws {
        let harness = UplinkHarness()
        let encodings = [EncodingDescription(ssrc: 1, rtxSSRC: 11), EncodingDescription(ssrc: 2, rtxSSRC: 12)]
        _ = harness.uplink.addTrack(.camera(encodings: encodings), at: at(0))
        for frame in 0..<30 {
            for ssrc in [UInt32(1), 2] where ssrc == 2 || frame < 15 {
                let packet = TestPacket(ssrc: ssrc, sequence: UInt16(frame), timestamp: UInt32(frame) * 3_000)
                harness.receive(packet, at: at(Double(frame) * 33))
            }
        }
        // The server stood still for two seconds and lost what came meanwhile: the first that it sees is the repair of a frame that it does not know.
        let lost = TestPacket(ssrc: 2, sequence: 30, timestamp: 30 * 3_000)
        let now = at(3_100)
        let result = harness.receive(lost.retransmitted(ssrc: 12, payloadType: 97, sequence: 1), at: now)
        guard case .stored = result else { return #expect(Bool(false), "\(result)") }
        let track = try #require(harness.uplink.tracks[0])
        #expect(track.isActive(layer: 1, at: now) && track.isActive(layer: 0, at: now))
        #expect(!track.isActive(layer: 0, at: at(462) + TrackActivity.limit))
    }

    @Test("A11: layers with a frame every two seconds are offered at any time")
    func offered() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription())
        var layers = VP8Encoder.simulcast()
        for turn in 0..<10 {
            for index in layers.indices {
                harness.turn(layers[index].frame(keyframe: turn == 0, ticks: 180_000), at: at(Double(turn) * 2_000))
            }
            guard turn > 1 else { continue }
            for part in 0..<20 {
                var offers: [LayerOffer] = []
                harness.track.appendOffers(at: at(Double(turn) * 2_000 + Double(part) * 100), to: &offers)
                #expect(offers.map(\.point.spatial) == [0, 1, 2])
                #expect(offers.allSatisfy { $0.bitrate > .zero && $0.framesPerSecond > 0.4 })
            }
        }
    }
}

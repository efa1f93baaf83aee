import MediaControl
import Primitives
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

    @Test("A11: layers with a frame every two seconds are offered at any time")
    func offered() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription())
        var layers = VP8Layer.simulcast()
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

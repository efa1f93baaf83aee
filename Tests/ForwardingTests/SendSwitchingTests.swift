import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Layer switches of a subscription")
struct SendSwitchingTests {
    @Test("G1: one continuous stream over 1,000 layer switches", arguments: [1, 2, 3])
    func thousandSwitches(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(), seed: seed)
        var layers = VP8Encoder.simulcast()
        var checker = ContinuityChecker()
        var milliseconds = 0.0
        var turns = 0
        while harness.totals.switches < 1_000, turns < 60_000 {
            turns += 1
            if turns % 5 == 0 {
                _ = harness.subscription.pointee.setPreference(
                    .spatial(Int.random(in: 0...2, using: &random)), track: harness.track, at: at(milliseconds))
            }
            // The encoder answers with a keyframe of all layers; packets of the layers mix, and turns end anywhere.
            let isKeyframe = turns % 5 == 2
            var queues = layers.indices.map {
                layers[$0].frame(keyframe: isKeyframe, packets: 1 + Int.random(in: 0...3, using: &random))
            }
            var packets: [[UInt8]] = []
            while queues.contains(where: { !$0.isEmpty }) {
                let index = Int.random(in: 0...2, using: &random)
                if !queues[index].isEmpty { packets.append(queues[index].removeFirst()) }
                if Int.random(in: 0...3, using: &random) == 0 {
                    harness.turn(packets, at: at(milliseconds))
                    packets = []
                }
            }
            harness.turn(packets, at: at(milliseconds))
            milliseconds += 33.3
        }
        checker.check(harness.out)
        #expect(harness.totals.switches == 1_000)
        #expect(
            checker.errors.isEmpty, "\(checker.errors.prefix(5)) of \(checker.errors.count) in \(harness.out.count)")
    }

    @Test("A layer that no decision put in force knew is found again where another stops, or it would never be sent")
    func foundAgain() {
        var layers = KnownLayers()
        layers.decided(0b101)
        // The middle one starts later, and the decision about it changes nothing; then the largest stops.
        let allowed = [0b101, 0b111, 0b111, 0b011, 0b011, 0b111].map { (sent: UInt8) -> [Int] in
            let allowed = layers.allowed(of: sent)
            return [Int(allowed), layers.consumeFound() ? 1 : 0]
        }
        #expect(allowed == [[0b101, 0], [0b101, 1], [0b101, 0], [0b001, 1], [0b001, 0], [0b101, 0]])
        layers.decided(0b111)
        _ = layers.allowed(of: 0b011)
        let isFound = layers.consumeFound()
        #expect(!isFound)
    }

    @Test("E7: a switch waits for the end of the current frame")
    func neverCut() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(preference: .spatial(0)))
        var layers = VP8Encoder.simulcast()
        for index in 0..<3 { harness.turn(layers[index].frame(keyframe: true), at: at(0)) }
        harness.turn(layers[0].frame(keyframe: false), at: at(100))
        #expect(harness.out.count == 6)
        _ = harness.subscription.pointee.setPreference(.spatial(2), track: harness.track, at: at(200))
        let low = layers[0].frame(keyframe: true, packets: 4), high = layers[2].frame(keyframe: true, packets: 4)
        harness.turn([low[0], low[1]], at: at(198))
        harness.turn([high[0], high[1]], at: at(200))
        #expect(harness.out.count == 8)
        harness.turn([low[2], high[2]], at: at(204))
        #expect(harness.out.count == 9)
        harness.turn([low[3], high[3]], at: at(206))
        #expect(harness.out.count == 6 + 4 + 4)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors)")
        #expect(harness.out.suffix(4).allSatisfy { $0.payload.count > harness.out[0].payload.count })
    }

    @Test("A frame whose end is lost delays a switch by at most 30 ms")
    func lostEnd() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(preference: .spatial(0)))
        var layers = VP8Encoder.simulcast()
        for index in 0..<3 { harness.turn(layers[index].frame(keyframe: true), at: at(0)) }
        harness.turn(layers[0].frame(keyframe: false), at: at(100))
        _ = harness.subscription.pointee.setPreference(.spatial(1), track: harness.track, at: at(200))
        let low = layers[0].frame(keyframe: true), high = layers[1].frame(keyframe: true)
        harness.turn([low[0]], at: at(198))
        harness.turn([high[0], high[1], high[2]], at: at(200))
        #expect(harness.layer == 0)
        harness.turn(layers[1].frame(keyframe: false), at: at(233))
        #expect(harness.layer == 1)
    }

    @Test(
        "The preference selects among the layers that are sent",
        arguments: [
            (LayerPreference.best, 2), (.spatial(0), 0), (.spatial(1), 1), (.spatial(9), 2), (.height(180), 0),
            (.height(181), 1),
            (.height(2_000), 2), (.rid("h"), 1), (.rid("nothing"), 2),
        ])
    func preference(_ preference: LayerPreference, expected: Int) {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(preference: preference))
        var layers = VP8Encoder.simulcast()
        for turn in 0..<8 {
            harness.turn(
                layers.indices.flatMap { layers[$0].frame(keyframe: turn % 4 == 0) },
                at: at(Double(turn) * 33 + Double(turn / 4) * 100))
        }
        #expect(harness.layer == expected)
    }

    @Test("A layer that stops is replaced by the best one below, at its next keyframe")
    func layerStops() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription())
        var layers = VP8Encoder.simulcast()
        var milliseconds = 0.0
        for turn in 0..<40 {
            harness.turn(
                layers.indices.flatMap { layers[$0].frame(keyframe: turn == 0 || turn == 20) }, at: at(milliseconds))
            milliseconds += 33
        }
        #expect(harness.layer == 2)
        for turn in 0..<60 {
            harness.turn([0, 1].flatMap { layers[$0].frame(keyframe: turn == 50) }, at: at(milliseconds))
            milliseconds += 33
        }
        #expect(harness.layer == 1)
        #expect(harness.signals.contains { $0.contains(.wantsKeyframe) })
        var checker = ContinuityChecker()
        checker.check(harness.out.filter { $0.time < at(1_300) })
        #expect(checker.errors.isEmpty, "\(checker.errors)")
    }

    @Test("C8: another publisher's track continues in the same stream, from a keyframe")
    func anotherTrack() {
        let harness = SendHarness(SendSession.track(1), SendSession.subscription())
        var first = VP8Encoder.simulcast(1)[0], second = VP8Encoder.simulcast(2)[0]
        second.pictureID = 99
        var milliseconds = 0.0
        for turn in 0..<10 {
            harness.turn(first.frame(keyframe: turn == 0), at: at(milliseconds))
            milliseconds += 33
        }
        harness.switchTo(SendSession.track(2), at: at(milliseconds))
        for turn in 0..<10 {
            harness.turn(second.frame(keyframe: turn == 3), at: at(milliseconds))
            milliseconds += 33
        }
        #expect(harness.out.count == 30 + 21)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors)")
        // Four frame times passed between the last picture of the first and the first of the second.
        let step = harness.out[30].header.timestamp &- harness.out[29].header.timestamp
        #expect(abs(Int(step) - 4 * 2_970) < 100)
    }

    @Test("After a pause the sequence numbers continue, the timestamps have advanced, and a keyframe comes first")
    func pause() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        harness.turn(layer.frame(keyframe: true), at: at(0))
        harness.setPaused(true)
        for turn in 1..<30 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33.3)) }
        #expect(harness.out.count == 3)
        let wantsKeyframe = harness.setPaused(false)
        #expect(wantsKeyframe)
        harness.turn(layer.frame(keyframe: false), at: at(1_000))
        #expect(harness.out.count == 3)
        harness.turn(layer.frame(keyframe: true), at: at(1_033))
        #expect(harness.out.count == 6)
        let before = harness.out[2], after = harness.out[3]
        #expect(after.isKeyframe)
        #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        #expect(after.pictureID == (before.pictureID + 1) & 0x7fff)
        // The publisher's own clock says how much time has passed: 31 frames.
        #expect(after.header.timestamp &- before.header.timestamp == 31 * 3_000)
    }

    @Test(
        "The keyframe behind a pause that a stall of the network holds up for seconds is placed by its clock, not by its arrival; one that comes later than any stall by its arrival",
        arguments: [(3_500, 30 * 3_000), (9_000, 30 * 3_000), (12_000, 13_000 * 90)] as [(Int, UInt32)])
    func lateKeyframe(lateness: Int, step: UInt32) {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        harness.turn(layer.frame(keyframe: true), at: at(0))
        harness.setPaused(true)
        for turn in 1..<30 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33.3)) }
        harness.setPaused(false)
        harness.turn(layer.frame(keyframe: true), at: at(1_000 + Double(lateness)))
        #expect(harness.out.count == 6)
        #expect(harness.out[3].isKeyframe)
        #expect(harness.out[3].header.timestamp &- harness.out[2].header.timestamp == step)
    }

    @Test("A new subscriber is served from a recent keyframe in the history")
    func replay() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        harness.subscription.pointee.unbind(harness.track)
        for turn in 0..<5 { harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33)) }
        #expect(harness.out.isEmpty)
        harness.subscription.pointee.bind(harness.track)
        harness.endTurn(at: at(170))
        #expect(harness.out.count == 15)
        #expect(harness.out[0].isKeyframe)
        harness.turn(layer.frame(keyframe: false), at: at(180))
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors)")
        #expect(harness.out.count == 18)
    }
}

import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Packets that waited in the pacer")
struct SendWaitingTests {
    private func begun() -> (SendHarness, VP8Encoder) {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        for turn in 0..<3 { harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33)) }
        return (harness, layer)
    }

    private func hasNoHole(_ harness: SendHarness) -> Bool {
        let numbers = harness.out.map(\.header.sequenceNumber)
        return zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 }
    }

    @Test("They are sent unchanged, once")
    func waited() {
        let (harness, source) = begun()
        var layer = source
        harness.parks = true
        harness.turn(layer.frame(keyframe: false), at: at(100))
        let results = harness.release(at: at(140))
        #expect(!results.isEmpty)
        for result in results { if case .written = result { continue } else { Issue.record("\(result)") } }
        harness.parks = false
        harness.turn(layer.frame(keyframe: false), at: at(150))
        #expect(hasNoHole(harness))
    }

    @Test("The section now carries another track: padding is sent under their numbers, and no gap remains")
    func otherTrack() {
        let (harness, source) = begun()
        var layer = source
        harness.parks = true
        harness.turn(layer.frame(keyframe: false), at: at(100))
        let before = harness.out.count
        harness.switchTo(SendSession.track(2), at: at(110))
        let results = harness.release(at: at(140))
        for result in results {
            guard case .filled(_, breaksFrame: false) = result else {
                Issue.record("\(result)")
                continue
            }
        }
        #expect(harness.out.count == before + results.count)
        #expect(harness.out.suffix(results.count).allSatisfy { $0.header.payloadLength == 0 })
        #expect(hasNoHole(harness))
        // The same number is never sent twice: its second text would give the key away.
        #expect(harness.release(at: at(150)).isEmpty)
    }

    @Test("The section no longer carries a track: still no gap")
    func noTrack() {
        let (harness, source) = begun()
        var layer = source
        harness.parks = true
        harness.turn(layer.frame(keyframe: false), at: at(100))
        let results = harness.release(at: at(140), hasTrack: false)
        #expect(!results.contains(.gone))
        #expect(hasNoHole(harness))
    }
}

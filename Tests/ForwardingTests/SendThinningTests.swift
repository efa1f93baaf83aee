import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// Temporal layers: thinned at once, and back where the encoder allows it.
@Suite("Temporal thinning")
struct SendThinningTests {
    /// Three temporal layers in Chromium's order: which layer, and whether it needs no earlier picture of its own.
    private static let pattern: [(layer: UInt8, isSwitchingPoint: Bool)] = [
        (0, false), (2, true), (1, true), (2, false),
    ]

    private final class Sender {
        let harness: SendHarness
        var layers: [VP8Encoder]
        var turns = 0

        init(layers: Int = 1, seed: UInt64 = 3) {
            harness = SendHarness(SendSession.track(layers: layers), SendSession.subscription(), seed: seed)
            self.layers = Array(VP8Encoder.simulcast().prefix(layers))
        }

        /// Sends frames of all simulcast layers, 30 a second.
        func send(_ frames: Int, keyframeAt keyframe: Int = -1, losing lost: (Int) -> Bool = { _ in false }) {
            for frame in 0..<frames {
                for index in layers.indices {
                    let packets = next(of: index, keyframe: frame == keyframe)
                    harness.turn(packets.enumerated().filter { !lost($0.offset) }.map(\.element), at: now)
                }
                turns += 1
            }
        }

        /// The next frame of a simulcast layer, not sent yet.
        func next(of index: Int = 0, keyframe: Bool = false) -> [[UInt8]] {
            let step = SendThinningTests.pattern[turns % 4]
            return layers[index].frame(
                temporal: keyframe ? 0 : step.layer, isSwitchingPoint: step.isSwitchingPoint,
                keyframe: turns == 0 || keyframe)
        }

        var now: MonotonicTime { at(Double(turns) * 33.3) }

        func bound(spatial: Int? = nil, temporal: Int?) {
            _ = harness.subscription.pointee.setBound(
                .upTo(LayerPoint(spatial: spatial ?? .max, temporal: temporal ?? .max)), track: harness.track, at: now)
        }

        /// Temporal layers of the frames written since `start`.
        func frames(since start: Int) -> [UInt8] {
            harness.out[start...].filter(\.startsFrame).map(\.temporalLayer)
        }
    }

    @Test("H8: fewer temporal layers take effect with the next frame; sequence numbers stay dense", arguments: [0, 1])
    func down(temporal: Int) {
        let sender = Sender()
        sender.send(8)
        let mark = sender.harness.out.count
        sender.bound(temporal: temporal)
        sender.send(16)
        #expect(sender.frames(since: mark).allSatisfy { $0 <= temporal })
        #expect(sender.frames(since: mark).count == (temporal == 0 ? 4 : 8))
        checkContinuity(sender.harness)
    }

    /// The last four frames, of layers 0, 2, 1 and 2, and which of them a NACK for their first packet repeats.
    private static func repeated(of sent: [WrittenPacket], _ sender: Sender) -> [Bool] {
        sent.map { sender.harness.repeats(of: $0.header.sequenceNumber, at: sender.now) != nil }
    }

    @Test("While only the lowest temporal layer is forwarded, frames of the others are not repeated")
    func noRepeats() {
        let sender = Sender()
        sender.send(8)
        let sent = sender.harness.out.suffix(12).filter(\.startsFrame)
        #expect(sent.map(\.temporalLayer) == [0, 2, 1, 2])
        sender.bound(temporal: 0)
        #expect(Self.repeated(of: sent, sender) == [true, false, false, false])
        sender.send(5)
        // More are wanted, but none that could begin has come: the next picture is of layer 2.
        sender.bound(temporal: 2)
        #expect(Self.repeated(of: sent, sender) == [true, false, false, false])
        sender.send(8)
        #expect(Self.repeated(of: sent, sender) == [true, true, true, true])
    }

    // Without a dependency descriptor a receiver of VP8 cannot tell that a frame of the second layer needs none of the third (libwebrtc's RtpVp8RefFinder).
    @Test("With two of three temporal layers of VP8 frames of the third are repeated")
    func repeats() {
        let sender = Sender()
        sender.send(8)
        let sent = sender.harness.out.suffix(12).filter(\.startsFrame)
        sender.bound(temporal: 1)
        sender.send(4)
        #expect(Self.repeated(of: sent, sender) == [true, true, true, true])
    }

    @Test("H8: more temporal layers start with a frame that refers to no earlier frame of its layer")
    func up() {
        let sender = Sender()
        sender.send(8)
        sender.bound(temporal: 0)
        sender.send(9)  // The next picture is the second of the pattern: layer 2, good to climb to from layer 1 only.
        let mark = sender.harness.out.count
        sender.bound(temporal: nil)
        sender.bound(temporal: 2)
        sender.send(8)
        #expect(sender.frames(since: mark) == [1, 0, 2, 1, 2, 0])
        checkContinuity(sender.harness)
    }

    @Test("H8: a keyframe starts all temporal layers")
    func keyframe() {
        let sender = Sender()
        sender.send(8)
        sender.bound(temporal: 0)
        sender.send(8)
        sender.bound(temporal: 2)
        let mark = sender.harness.out.count
        sender.send(4, keyframeAt: 0)
        #expect(sender.frames(since: mark) == [0, 2, 1, 2])
        checkContinuity(sender.harness)
    }

    @Test("G1: one continuous stream while spatial and temporal limits change at random", arguments: [1, 2, 3, 4])
    func random(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let sender = Sender(layers: 3, seed: seed)
        for _ in 0..<400 {
            sender.bound(
                spatial: Int.random(in: 0...2, using: &random), temporal: Int.random(in: 0...2, using: &random))
            sender.send(Int.random(in: 1...9, using: &random), keyframeAt: Int.random(in: 0...4, using: &random))
        }
        #expect(sender.harness.totals.switches > 100, "seed \(seed)")
        checkContinuity(sender.harness)
    }

    @Test("G1: a packet that is repaired after a stop has the picture id reserved for it, and no other packet has it")
    func repairedAfterStop() {
        let sender = Sender()
        sender.send(8)
        sender.bound(temporal: 0)
        sender.send(8)
        // All of the next picture is missing, of the lowest layer; the three behind it are left out.
        let missing = sender.next()
        sender.turns += 1
        sender.send(3)
        sender.harness.setPaused(true)
        sender.harness.setPaused(false)
        let mark = sender.harness.out.count
        sender.send(2, keyframeAt: 0)
        sender.harness.turn(missing, at: sender.now)
        let late = sender.harness.out[mark...].suffix(3), begun = sender.harness.out[mark...].dropLast(3)
        #expect(begun.count >= 3 && late.count == 3)
        #expect(begun.first!.pictureID == (late.first!.pictureID + 1) & 0x7fff)
        #expect(begun.first!.temporalZero == late.first!.temporalZero &+ 1)
        #expect(begun.first!.header.sequenceNumber == late.last!.header.sequenceNumber &+ 1)
    }

    @Test("A frame that loses a packet while others are dropped keeps its reserved number")
    func loss() {
        let sender = Sender()
        sender.send(8)
        sender.bound(temporal: 1)
        sender.send(8)
        let before = sender.harness.out.last!.header.sequenceNumber
        let mark = sender.harness.out.count
        sender.send(4, losing: { $0 == 1 })
        let numbers = sender.harness.out[mark...].map { $0.header.sequenceNumber &- before }
        // Layers 0, 2, 1, 2: of the frames that are sent, the middle packet is missing. Whose a missing packet was is not known, so
        // those of frames that are left out stay free as well, until they are asked for.
        #expect(numbers.count == 4)
        #expect(Set(numbers).count == 4 && numbers == numbers.sorted())
        #expect(numbers[1] - numbers[0] == 2)
    }

    @Test(
        "Late packets of a dropped frame are replaced by padding, those of a sent frame are sent"
    )
    func late() {
        let sender = Sender()
        sender.send(8)
        sender.bound(temporal: 1)
        sender.send(1)
        var held: [[UInt8]] = []
        let mark = sender.harness.out.count
        // Layer 2, of which only the last packet comes in time; then layer 1, of which the middle one does not.
        for (layer, missing) in [(UInt8(2), 0...1), (1, 1...1)] {
            let packets = sender.layers[0].frame(temporal: layer, isSwitchingPoint: true, keyframe: false)
            held += missing.map { packets[$0] }
            sender.harness.turn(packets.indices.filter { !missing.contains($0) }.map { packets[$0] }, at: sender.now)
            sender.turns += 1
        }
        sender.harness.turn(held, at: sender.now)
        let written = sender.harness.out[mark...].sorted { $0.header.sequenceNumber < $1.header.sequenceNumber }
        #expect(written.map { $0.header.payloadLength > 0 } == [false, false, true, true, true])
        #expect(
            zip(written, written.dropFirst()).allSatisfy { $1.header.sequenceNumber == $0.header.sequenceNumber + 1 })
    }

    @Test("Offers contain the bitrate of each temporal layer of each simulcast layer")
    func offers() throws {
        let sender = Sender(layers: 3)
        sender.send(90)
        var offers: [LayerOffer] = []
        sender.harness.track.appendOffers(at: sender.now, to: &offers)
        #expect(offers.map { [$0.point.spatial, $0.point.temporal] } == (0..<9).map { [$0 / 3, $0 % 3] })
        #expect(offers.map(\.height) == [180, 180, 180, 360, 360, 360, 720, 720, 720])
        for spatial in 0..<3 {
            let rates = offers.filter { $0.point.spatial == spatial }.map { Double($0.bitrate.bitsPerSecond) }
            let frames = offers.filter { $0.point.spatial == spatial }.map(\.framesPerSecond)
            #expect(abs(rates[0] / rates[2] - 0.25) < 0.05 && abs(rates[1] / rates[2] - 0.5) < 0.05, "\(rates)")
            #expect(abs(frames[0] - 7.5) < 1 && abs(frames[1] - 15) < 1.5 && abs(frames[2] - 30) < 2, "\(frames)")
        }
    }

    private func checkContinuity(_ harness: SendHarness) {
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors.prefix(5)) of \(checker.errors.count)")
    }
}

extension VP8Encoder {
    /// The packets of the next picture of a temporal layer.
    fileprivate mutating func frame(temporal: UInt8, isSwitchingPoint: Bool, keyframe: Bool) -> [[UInt8]] {
        if temporal > 0 { temporalZero &-= 1 }
        return frame(keyframe: keyframe).map { packet in
            var packet = packet
            let header = packet.withUnsafeBytes { RTPHeader($0.bytes) }!
            packet[header.payloadOffset + 5] |= temporal << 6 | (isSwitchingPoint && temporal > 0 ? 0x20 : 0)
            return packet
        }
    }
}

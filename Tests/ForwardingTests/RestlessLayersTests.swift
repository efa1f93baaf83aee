import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// A publisher of three layers whose packets are lost, repaired late or first, and whose layers stop and resume while the receiver stands still for seconds.
private struct RestlessPublisher {
    private static let pauses: [ClosedRange<Double>] = [300...1_500, 1_900...5_000]
    private var random: RandomSource
    private var layers = VP8Encoder.simulcast()
    private var isSending = [true, true, true]
    private var lost: [[UInt8]] = []
    private var repairs: UInt16 = 0

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    static let track: TrackDescription = {
        var track = SendSession.track(layers: 3)
        for index in track.encodings.indices { track.encodings[index].rtxSSRC = 0x9000 + UInt32(index) }
        return track
    }()

    /// Milliseconds until the next turn.
    mutating func wait() -> Double {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<3: Double.random(in: Self.pauses[1], using: &random)
        case 3..<10: Double.random(in: Self.pauses[0], using: &random)
        default: 33
        }
    }

    mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    /// What arrives in a turn; after a pause often nothing but repairs.
    mutating func turn(afterPause: Bool) -> [[UInt8]] {
        var arriving: [[UInt8]] = []
        let onlyRepairs = afterPause && happens(60)
        for index in layers.indices {
            if happens(3) { isSending[index].toggle() }
            guard isSending[index] else { continue }
            for packet in layers[index].frame(keyframe: happens(5), packets: Int.random(in: 1...4, using: &random)) {
                if onlyRepairs || happens(10) { lost.append(packet) } else { arriving.append(packet) }
            }
        }
        while !lost.isEmpty, onlyRepairs ? arriving.count < 3 : happens(20) {
            arriving.append(repair(lost.remove(at: Int.random(in: 0..<lost.count, using: &random))))
        }
        if lost.count > 60 { lost.removeFirst(30) }
        return happens(20) ? arriving.shuffled(using: &random) : arriving
    }

    /// RFC 4588: the packet under the number and SSRC of the retransmission stream, its own number in front of the payload.
    private mutating func repair(_ packet: [UInt8]) -> [UInt8] {
        repairs &+= 1
        var bytes = Array(packet[..<12]) + packet[2..<4] + packet[12...]
        bytes[1] = bytes[1] & 0x80 | 97
        bytes.replaceSubrange(2..<4, with: [UInt8(repairs >> 8), UInt8(truncatingIfNeeded: repairs)])
        bytes.replaceSubrange(8..<12, with: [0, 0, 0x90, packet[11]])
        return bytes
    }
}

@Suite("Receive: pauses, repairs and layers that stop")
struct RestlessLayersTests {
    @Test(
        "Whatever pauses, whichever repair comes first and whichever layer stops: rates stay finite, and no number is sent twice",
        arguments: 1...5 as ClosedRange<UInt64>)
    func restless(seed: UInt64) {
        var publisher = RestlessPublisher(seed: seed)
        let harness = SendHarness(RestlessPublisher.track, SendSession.subscription())
        let feedback = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_200, alignment: 16)
        defer { feedback.deallocate() }
        var clock = 0.0, sent: Set<UInt16> = [], all = 0
        for _ in 0..<3_000 {
            let wait = publisher.wait()
            clock += wait
            let now = at(clock)
            harness.turn(publisher.turn(afterPause: wait > 33), at: now)
            while harness.uplink.advance(to: now, feedback: feedback) > 0 {}
            var offers: [LayerOffer] = []
            harness.track.appendOffers(at: now, to: &offers)
            for offer in offers {
                #expect(offer.framesPerSecond.isFinite && offer.framesPerSecond >= 0 && offer.bitrate >= .zero)
            }
            let statistics = harness.track.statistics(at: now)
            #expect(statistics.layers.allSatisfy { $0.framesPerSecond.isFinite && $0.framesPerSecond <= 240 })
            for packet in harness.out {
                #expect(sent.insert(packet.header.sequenceNumber).inserted, "seed \(seed), \(clock) ms")
            }
            all += harness.out.count
            // Numbers wrap; those of long ago may come again.
            if sent.count > 30_000 { sent.removeAll() }
            harness.out.removeAll()
            if publisher.happens(2) { harness.setPaused(publisher.happens(50)) }
        }
        #expect(all > 0, "something was forwarded")
    }
}

import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Capture times")
struct CaptureTimeTests {
    /// What shakes by 8 ms: the frames' timestamps while they leave evenly, or their leaving while their timestamps are even.
    enum Shaken: CaseIterable { case media, wall }

    @Test(
        "A14: frames with 8 ms of jitter in media time or in wall time keep their timestamps, and sender reports stay on one line within 5 ms",
        arguments: Shaken.allCases)
    func uneven(shaken: Shaken) throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        var camera = VP8Encoder(ssrc: 0x100), random = RandomSource(seed: 14), sent: [UInt32] = []
        let start = harness.now, base = camera.timestamp
        for index in 0..<900 {
            // Microseconds from the start: when the frame was taken, when it leaves.
            let even = Int64(index) * 33_333, shake = index == 0 ? 0 : Int64.random(in: -8_000...8_000, using: &random)
            let taken = even + (shaken == .media ? shake : 0), leaves = even + 10_000 + (shaken == .wall ? shake : 0)
            harness.run(for: start + .microseconds(leaves) - harness.now)
            let wanted = base &+ UInt32(truncatingIfNeeded: taken * 9 / 100)
            sent.append(wanted)
            for packet in camera.frame(keyframe: index == 0, ticks: wanted &- camera.timestamp) {
                harness.send(packet, from: publisher)
            }
            guard index % 30 == 0 else { continue }
            // The publisher's own clock, whatever its frames do.
            let now = (harness.now - start).nanoseconds / 1_000
            harness.sendRTCP(from: publisher) {
                $0.beginSenderReport(
                    ssrc: 0x100, ntpTimestamp: UInt64((3_900_000_000 + Double(now) / 1e6) * 4_294_967_296),
                    rtpTimestamp: base &+ UInt32(truncatingIfNeeded: now * 9 / 100), packetCount: 1, octetCount: 1)
            }
        }
        let forwarded = viewer.rtp.filter { $0.header.ssrc == 0xa000_0001 && $0.header.marker }.map(\.header.timestamp)
        #expect(forwarded.count == sent.count)
        // One offset for all: the subscriber's stream may begin anywhere.
        #expect(Set(zip(forwarded, sent).map { $0 &- $1 }).count == 1)
        let offset = forwarded[0] &- sent[0]
        let lines = viewer.feedback.compactMap { item -> Double? in
            guard case .senderReport(let report) = item.packet, report.ssrc == 0xa000_0001 else { return nil }
            let media = Double(Int32(bitPattern: report.rtpTimestamp &- offset &- base)) / 90_000
            return Double(report.ntpTimestamp >> 32) + Double(report.ntpTimestamp & 0xffff_ffff) / 4_294_967_296 - media
        }
        // Reports from before the publisher's first one go by arrivals.
        let settled = lines.dropFirst(2)
        #expect(settled.count > 15)
        let spread = (settled.max() ?? 0) - (settled.min() ?? 0)
        print("sender reports on one line within \(spread * 1_000) ms, \(settled.count) of them")
        #expect(spread <= 0.005)
    }

    @Test(
        "B6: a subscriber that did not negotiate the orientation of a track that carries it is reported, and no other")
    func withoutOrientation() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        var plain = Session.video(2, of: publisher)
        plain.extensions[.videoOrientation] = 0
        harness.apply(.addTrack(plain))
        for number in 1...4 as ClosedRange<UInt64> {
            // Two viewers of each track, of whom the first has the extension.
            var subscription = Session.subscribe(
                number, to: (number + 1) / 2, by: harness.addClient(room: Session.room))
            if number % 2 == 0 { subscription.extensions[.videoOrientation] = 0 }
            harness.apply(.subscribe(subscription))
        }
        let statistics = try #require(harness.engine.report(.room(Session.room))).subscriptions
        let lacking = statistics.filter(\.orientationNotNegotiated).map(\.subscription)
        #expect(statistics.count == 4 && lacking == [SubscriptionID(2)])
    }
}

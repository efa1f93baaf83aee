import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding
@testable import MediaEngine

@Suite("Feedback through an engine")
struct FeedbackTests {
    /// A room with a camera that sends at 30 frames per second, and subscribers.
    final class Stage {
        let harness: EngineHarness
        let publisher: TestClient
        var viewers: [TestClient] = []
        var camera = VP8Encoder(ssrc: 0x100)
        private var isFilming = false

        init(viewers count: Int, batchDatagrams: Int = 512, rtx: Bool = true, profiles: String? = nil) throws {
            harness = try EngineHarness(batchDatagrams: batchDatagrams, profiles: profiles)
            harness.apply(.addRoom(Session.room))
            publisher = harness.addClient(room: Session.room)
            harness.apply(.addTrack(Session.video(1, of: publisher)))
            for index in 0..<count {
                let viewer = harness.addClient(room: Session.room)
                viewers.append(viewer)
                harness.apply(.subscribe(Session.subscribe(UInt64(index + 1), to: 1, by: viewer, rtx: rtx)))
            }
        }

        /// Films for `frames` pictures; answers keyframe requests as an encoder does.
        func film(_ frames: Int, keyframeFirst: Bool = false) {
            for index in 0..<frames {
                let asked = publisher.keyframeRequests.last ?? .zero
                let isKeyframe = asked > lastKeyframe || (keyframeFirst && index == 0)
                if isKeyframe { lastKeyframe = harness.now }
                let packets = camera.frame(keyframe: isKeyframe)
                harness.inOneTurn { for packet in packets { harness.send(packet, from: publisher) } }
                harness.run(for: .milliseconds(33))
            }
        }
        private var lastKeyframe = MonotonicTime.zero
    }

    @Test("G3: a NACK is answered by RTX in its own turn; a second one within the round trip is not")
    func nack() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0]
        stage.film(10, keyframeFirst: true)
        let lost = viewer.rtp[20]
        let count = viewer.rtp.count
        for _ in 0..<2 {
            stage.harness.sendRTCP(from: viewer) {
                $0.beginNACK(senderSSRC: 1, mediaSSRC: 0xa000_0001)
                $0.addMissing(lost.header.sequenceNumber)
                $0.addMissing(lost.header.sequenceNumber &+ 3)
            }
        }
        #expect(viewer.rtp.count == count + 2)
        let repeated = viewer.rtp[count]
        #expect(repeated.header.ssrc == 0xb000_0001)
        #expect(repeated.header.payloadType == 121)
        #expect(Array(repeated.payload.dropFirst(2)) == Array(lost.payload))
        let statistics = stage.harness.engine.statistics
        #expect(statistics.retransmissionsSent == 2)
        #expect(statistics.nacksReceived == 4)
        #expect(statistics.drops[.retransmissionThrottled] == 2)
    }

    @Test("Without RTX the packet is retransmitted on its own stream, where the SRTP profile allows it")
    func nackWithoutRTX() throws {
        let stage = try Stage(viewers: 1, rtx: false, profiles: "SRTP_AES128_CM_SHA1_80")
        let viewer = stage.viewers[0]
        // Lost on the way, so that SRTP's replay check does not swallow the repeat.
        viewer.losesRTP = { _ in false }
        stage.film(10, keyframeFirst: true)
        let sent = stage.harness.engine.statistics.packetsSent
        stage.harness.sendRTCP(from: viewer) {
            $0.beginNACK(senderSSRC: 1, mediaSSRC: 0xa000_0001)
            $0.addMissing(viewer.rtp[20].header.sequenceNumber)
        }
        #expect(stage.harness.engine.statistics.retransmissionsSent == 1)
        #expect(stage.harness.engine.statistics.packetsSent == sent + 1)
    }

    @Test("Under AES-GCM, too, a packet is retransmitted on its own stream, from the second on that is asked for")
    func nackUnderGCM() throws {
        let stage = try Stage(viewers: 1, rtx: false)
        let viewer = stage.viewers[0]
        func ask(_ packet: Int) {
            stage.harness.sendRTCP(from: viewer) {
                $0.beginNACK(senderSSRC: 1, mediaSSRC: 0xa000_0001)
                $0.addMissing(viewer.rtp[packet].header.sequenceNumber)
            }
        }
        stage.film(10, keyframeFirst: true)
        ask(20)
        #expect(stage.harness.engine.statistics.retransmissionsSent == 0)
        stage.film(10)
        ask(viewer.rtp.count - 3)
        #expect(stage.harness.engine.statistics.retransmissionsSent == 1)
    }

    @Test("G5: 100 joins in 100 ms cause at most two keyframes of the publisher")
    func manyJoins() throws {
        let stage = try Stage(viewers: 0)
        stage.film(90, keyframeFirst: true)
        let asked = stage.publisher.keyframeRequests.count
        var viewers: [TestClient] = []
        for _ in 0..<100 { viewers.append(stage.harness.addClient(room: Session.room)) }
        let before = stage.publisher.keyframeRequests.count
        #expect(before == asked)
        for (index, viewer) in viewers.enumerated() {
            stage.harness.apply(.subscribe(Session.subscribe(UInt64(index + 1), to: 1, by: viewer)))
            if index % 33 == 32 { stage.film(1) }
        }
        stage.film(30)
        #expect(stage.publisher.keyframeRequests.count - before <= 2)
        for viewer in viewers {
            #expect(viewer.rtp.count >= 80)
            #expect(viewer.rtp[0].payload.dropFirst(6).first == 0, "the first packet begins a keyframe")
        }
    }

    @Test("G5: keyframe requests of all subscribers together become one every 500 ms")
    func manyRequests() throws {
        let stage = try Stage(viewers: 20)
        stage.film(30, keyframeFirst: true)
        let before = stage.publisher.keyframeRequests.count
        for _ in 0..<10 {
            for (index, viewer) in stage.viewers.enumerated() {
                stage.harness.sendRTCP(from: viewer) {
                    $0.appendPictureLoss(senderSSRC: 1, mediaSSRC: 0xa000_0001 + UInt32(index))
                }
            }
            stage.film(3)
        }
        let times = stage.publisher.keyframeRequests.dropFirst(before)
        #expect(times.count <= 3)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= .milliseconds(500) })
        #expect(stage.harness.engine.statistics.keyframeRequestsReceived == 200)
    }

    @Test("A viewer that waits for a smaller size and needs a keyframe gets one, also where no other layer begins")
    func keyframeInsteadOfShrinking() throws {
        let stage = try Stage(viewers: 2)
        stage.film(150, keyframeFirst: true)
        let found = stage.harness.engine.tables.subscriptionIndex[1]
        let index = try #require(found)
        let state = stage.harness.engine.tables.subscriptions[index]
        let size = try #require(state.pointee.allocation.layer).spatial
        func offer(_ spatial: Int, _ temporal: Int) -> LayerOffer {
            LayerOffer(
                LayerPoint(spatial: spatial, temporal: temporal), bitrate: .kilobitsPerSecond(300), height: 360,
                framesPerSecond: 30)
        }
        // Bandwidth falls short, but the moment for a smaller size has not come; by then it suffices again.
        let request = AllocationRequest(id: SubscriptionID(1), offers: [offer(size, 0), offer(size, 1)])
        var decision = AllocationDecision(
            id: request.id, layer: offer(size - 1, 0), reason: .bandwidth(needed: .zero, available: .zero), next: nil)
        let isPostponed = state.pointee.allocation.postpone(&decision, for: request, at: stage.harness.now) { _ in
            false
        }
        #expect(isPostponed && state.pointee.allocation.isAboutToShrink)
        let before = stage.publisher.keyframeRequests.count
        stage.harness.sendRTCP(from: stage.viewers[0]) {
            $0.appendPictureLoss(senderSSRC: 1, mediaSSRC: 0xa000_0001)
        }
        stage.film(3)
        #expect(stage.publisher.keyframeRequests.count == before + 1)
    }

    @Test("A batch that is too small for the turn is flushed as often as needed; no subscriber misses a packet")
    func smallBatch() throws {
        let stage = try Stage(viewers: 30, batchDatagrams: 24)
        stage.film(30, keyframeFirst: true)
        #expect(stage.harness.flushes > 50)
        for viewer in stage.viewers {
            #expect(viewer.rtp.count == 90)
            for (before, after) in zip(viewer.rtp, viewer.rtp.dropFirst()) {
                #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
            }
        }
    }

    @Test("The packets of one subscriber are contiguous in the batch")
    func backToBack() throws {
        let stage = try Stage(viewers: 3)
        stage.film(5, keyframeFirst: true)
        // Seen from the clients: all three packets of a picture come at one moment.
        for viewer in stage.viewers {
            let times = Dictionary(grouping: viewer.rtp, by: \.time)
            #expect(times.values.allSatisfy { $0.count == 3 })
        }
    }

    @Test("Sender reports keep audio and video of one publisher in sync, and measure the round trip")
    func senderReports() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0], harness = stage.harness
        harness.apply(.addTrack(Session.audio(2, of: stage.publisher)))
        harness.apply(.subscribe(Session.subscribe(50, to: 2, by: viewer, kind: .audio)))
        var microphone = OpusEncoder(ssrc: 0x200)
        stage.film(3, keyframeFirst: true)
        // The publisher's clock: NTP second 5,000 is video time t and audio time u.
        let videoTime = stage.camera.timestamp, audioTime = microphone.timestamp
        harness.send(microphone.packet(), from: stage.publisher)
        for (ssrc, timestamp) in [(UInt32(0x100), videoTime), (0x200, audioTime)] {
            harness.sendRTCP(from: stage.publisher) {
                $0.beginSenderReport(
                    ssrc: ssrc, ntpTimestamp: 5_000 << 32, rtpTimestamp: timestamp, packetCount: 1, octetCount: 1)
            }
            harness.run(for: .milliseconds(7))
        }
        stage.film(60)
        var reports: [UInt32: [SenderReport]] = [:]
        for item in viewer.feedback {
            if case .senderReport(let report) = item.packet { reports[report.ssrc, default: []].append(report) }
        }
        let video = try #require(reports[0xa000_0001]?.last), audio = try #require(reports[0xa000_0032]?.last)
        #expect((reports[0xa000_0001]?.count ?? 0) >= 2)
        #expect(video.packetCount > 0 && video.octetCount > 0)
        // Where both clocks read the publisher's second 5,000.
        func ntp(at timestamp: UInt32, _ report: SenderReport, rate: Double) -> Double {
            Double(report.ntpTimestamp) / 4_294_967_296 + Double(Int32(bitPattern: timestamp &- report.rtpTimestamp))
                / rate
        }
        #expect(abs(ntp(at: videoTime, video, rate: 90_000) - ntp(at: audioTime, audio, rate: 48_000)) < 0.000_1)
        // The viewer answers 20 ms later, having held the report for 5 ms: 15 ms on the way.
        let sent = viewer.feedback.last {
            if case .senderReport(let report) = $0.packet { report.ssrc == 0xa000_0001 } else { false }
        }!
        let age = harness.now - sent.time
        harness.run(for: .milliseconds(20))
        harness.sendRTCP(from: viewer) {
            $0.beginReceiverReport(ssrc: 1)
            $0.addReportBlock(
                ReportBlock(
                    ssrc: 0xa000_0001, fractionLost: 64, cumulativeLost: 0, highestSequence: 0, jitter: 450,
                    lastSenderReport: video.compactTimestamp,
                    delaySinceLastSenderReport: UInt32((age + .milliseconds(5)).nanoseconds * 65_536 / 1_000_000_000)))
        }
        let statistics = try #require(harness.engine.report(.room(Session.room)))
        let roundTrip = try #require(statistics.peers.first { $0.peer == viewer.id }?.roundTripTime)
        #expect(abs(roundTrip.milliseconds - 15) <= 1)
        let down = try #require(statistics.subscriptions.first { $0.subscription == SubscriptionID(1) })
        #expect(down.fractionLost == 0.25 && down.jitterMilliseconds == 5)
        let up = try #require(statistics.tracks.first { $0.track == down.track }?.layers.first { $0.isActive })
        #expect(down.width == up.width && down.height == up.height && down.height > 0)
    }

    @Test("Reports end with a mute and go on after it; a round trip of before the mute no longer counts")
    func reportsAfterMute() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0], harness = stage.harness
        stage.film(3, keyframeFirst: true)
        harness.sendRTCP(from: stage.publisher) {
            $0.beginSenderReport(
                ssrc: 0x100, ntpTimestamp: 5_000 << 32, rtpTimestamp: stage.camera.timestamp, packetCount: 1,
                octetCount: 1)
        }
        stage.film(40)
        func reports() -> [(time: MonotonicTime, report: SenderReport)] {
            viewer.feedback.compactMap {
                guard case .senderReport(let report) = $0.packet, report.ssrc == 0xa000_0001 else { return nil }
                return ($0.time, report)
            }
        }
        func roundTrip() throws -> TimeSpan? {
            let statistics = try #require(harness.engine.report(.room(Session.room)))
            return statistics.peers.first { $0.peer == viewer.id }?.roundTripTime
        }
        let last = try #require(reports().last)
        harness.run(for: .milliseconds(90))
        harness.sendRTCP(from: viewer) {
            $0.beginReceiverReport(ssrc: 1)
            $0.addReportBlock(
                ReportBlock(
                    ssrc: 0xa000_0001, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0,
                    lastSenderReport: last.report.compactTimestamp, delaySinceLastSenderReport: 0))
        }
        let measured = try #require(try roundTrip())
        #expect(measured >= .milliseconds(90))
        harness.apply(.setTrackMuted(TrackID(1), true))
        harness.run(for: .seconds(12))
        #expect(reports().last?.time == last.time)
        #expect(try roundTrip() != measured)
        harness.apply(.setTrackMuted(TrackID(1), false))
        let unmuted = harness.now
        stage.film(70)
        let after = reports().filter { $0.time > unmuted }
        #expect(after.count == 2)
        #expect(after.first.map { $0.time - unmuted <= .milliseconds(1_100) } == true)
    }

    @Test("Loss on the uplink is requested again, and the repair reaches the subscriber under its reserved number")
    func uplinkLoss() throws {
        let stage = try Stage(viewers: 1)
        stage.film(5, keyframeFirst: true)
        var packets = stage.camera.frame()
        let lost = packets.remove(at: 1)
        for packet in packets { stage.harness.send(packet, from: stage.publisher) }
        stage.harness.run(for: .milliseconds(15))
        let nacks = stage.publisher.feedback.filter { if case .nack = $0.packet { true } else { false } }
        #expect(nacks.count == 1)
        stage.harness.send(lost, from: stage.publisher)
        let numbers = stage.viewers[0].rtp.map(\.header.sequenceNumber)
        #expect(Set(numbers) == Set((0..<18).map { numbers[0] &+ UInt16($0) }))
    }

    @Test("Transport-wide numbers count over all sections of a subscriber, and its feedback is accepted")
    func transportWide() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0], harness = stage.harness
        harness.apply(.addTrack(Session.audio(2, of: stage.publisher)))
        harness.apply(.subscribe(Session.subscribe(50, to: 2, by: viewer, kind: .audio)))
        var microphone = OpusEncoder(ssrc: 0x200)
        for index in 0..<20 {
            harness.send(microphone.packet(), from: stage.publisher)
            stage.film(1, keyframeFirst: index == 0)
        }
        let numbers = viewer.rtp.compactMap { $0.element(12) }.map { UInt16($0[0]) << 8 | UInt16($0[1]) }
        #expect(numbers == (1...80).map { UInt16($0) })
        let arrivals = viewer.rtp.enumerated().map {
            PacketArrival(sequence: Int64($0.offset + 1), time: $0.element.time)
        }
        harness.sendRTCP(from: viewer) {
            let taken = $0.appendTransportFeedback(
                senderSSRC: 1, mediaSSRC: 0xa000_0001, feedbackCount: 0, from: 1, arrivals: arrivals.span)
            #expect(taken == 80)
        }
        let downlink = harness.engine.tables.peers[harness.engine.tables.peerIndex[viewer.id.rawValue]!].pointee
            .downlink!
        #expect(downlink.pointee.condition(at: harness.now).received == 80)
    }
}

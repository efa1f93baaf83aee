import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Receive: transport-wide feedback, reports and rates")
struct ReceiveFeedbackTests {
    private static func transport(_ number: UInt16) -> (UInt8, [UInt8]) {
        (3, [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
    }

    private static func audio(_ number: UInt16, transport: UInt16? = nil, length: Int = 60) -> TestPacket {
        var packet = TestPacket(
            ssrc: 0xa, payloadType: 111, sequence: number, timestamp: UInt32(number) &* 960,
            payload: [0x78] + [UInt8](repeating: 1, count: length))
        if let transport { packet.extensions = [Self.transport(transport)] }
        return packet
    }

    @Test("B10: for audio in bursts of 512 ms feedback is complete and in order")
    func bursts() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        var number: UInt16 = 65_500
        var arrivals: [UInt16: MonotonicTime] = [:]
        for burst in 0..<40 {
            let now = at(Double(burst) * 512.3)
            harness.run(to: now)
            for _ in 0..<26 {
                #expect(harness.receive(Self.audio(number, transport: number), at: now) != .dropped(.rtpDuplicate))
                arrivals[number] = now
                number &+= 1
            }
            let track = try #require(harness.lastTrack)
            #expect(
                track.arrivals.map { UInt16(truncatingIfNeeded: $0.sequence) } == (0..<26).map { number &- 26 &+ $0 })
            track.endTurn()
        }
        harness.run(to: at(30_000))
        let reported = harness.transportArrivals
        #expect(reported.count == arrivals.count)
        for (number, time) in arrivals { #expect(reported[number] == .some(time.microseconds / 250)) }
        let track = try #require(harness.uplink.tracks[0])
        #expect(track.statistics(at: at(20_500)).layers[0].jitterMilliseconds > 10, "the jitter shows the burst")
        #expect(track.statistics(at: at(20_500)).layers[0].packetsLost == 0)
    }

    @Test("Every transport-wide number is reported: media, retransmissions, padding, unknown streams; losses as lost")
    func everything() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        var number: UInt16 = 100
        for index in UInt16(0)..<300 {
            let now = at(Double(index) * 3)
            harness.run(to: now)
            var packet = TestPacket(
                ssrc: [1, 2, 3][Int(index % 3)], payloadType: [96, 97, 99][Int(index % 3)], sequence: index / 3)
            packet.extensions = [Self.transport(number)]
            if index % 3 == 1 { packet.payload = []; packet.padding = 100 }
            if index % 10 != 7 { harness.receive(packet, at: now) }
            number &+= 1
        }
        harness.run(to: at(2000))
        let reported = harness.transportArrivals
        for index in UInt16(0)..<299 {
            let status = reported[100 + index]
            #expect(status != nil, "number \(index) was not reported")
            if let status { #expect((status != nil) == (index % 10 != 7)) }
        }
        let times = harness.packets.compactMap { item -> MonotonicTime? in
            if case .transportFeedback = item.packet { item.at } else { nil }
        }
        for (a, b) in zip(times, times.dropFirst()) { #expect(b - a <= .milliseconds(110)) }
        #expect(times.count >= 8 && times.count <= 20)
    }

    @Test("A packet that arrives after later ones were reported is then reported as received")
    func late() {
        var recorder = TransportFeedbackRecorder()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1200, alignment: 8)
        defer { buffer.deallocate() }
        for number: UInt16 in [1, 2, 4, 5] { recorder.record(number, mediaSSRC: 1, at: at(0)) }
        var writer = RTCPWriter(buffer)
        #expect(recorder.write(&writer, senderSSRC: 2, at: at(100)))
        recorder.record(3, mediaSSRC: 1, at: at(120))
        recorder.record(6, mediaSSRC: 1, at: at(121))
        var second = RTCPWriter(buffer)
        #expect(recorder.write(&second, senderSSRC: 2, at: at(300)))
        let raw = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<second.length])
        var compound = RTCPCompound(raw.bytes)
        guard case .transportFeedback(let feedback)? = compound?.next(in: raw.bytes) else {
            Issue.record("no feedback")
            return
        }
        #expect(feedback.baseSequence == 3 && feedback.packetCount == 4 && feedback.feedbackCount == 1)
        var reader = feedback.makeReader(in: raw.bytes)
        #expect(reader?.next(in: raw.bytes)?.arrival == at(120).microseconds / 250)
    }

    @Test(
        "A flood or a jump of transport-wide numbers stays within bounds", arguments: [UInt16(1), 7, 600, 5000, 30_000])
    func jumps(step: UInt16) {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        var number: UInt16 = 0
        for index in UInt16(0)..<3000 {
            harness.receive(Self.audio(index, transport: number), at: at(Double(index) / 4))
            number &+= step
            if index % 64 == 0 { harness.run(to: at(Double(index) / 4)) }
        }
        harness.run(to: at(3000))
        #expect(harness.sent.allSatisfy { $0.bytes.count <= 1200 })
    }

    @Test("B2: a publish-only peer's feedback costs at most 5 kbit/s", arguments: [50, 110, 200, 350])
    func quietDownlink(packetsPerSecond: Int) {
        let harness = UplinkHarness(profile: .publishOnly)
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        for index in 0..<(packetsPerSecond * 20) {
            let now = at(Double(index) * 1000 / Double(packetsPerSecond))
            harness.run(to: now)
            var packet =
                index % 3 == 0
                ? Self.audio(UInt16(truncatingIfNeeded: index / 3))
                : TestPacket(
                    ssrc: 0xb, sequence: UInt16(truncatingIfNeeded: index - index / 3),
                    timestamp: UInt32(index) * 900)
            packet.extensions = [Self.transport(UInt16(truncatingIfNeeded: index))]
            harness.receive(packet, at: now)
        }
        harness.run(to: at(20_000))
        // SRTCP adds 14 to 20 bytes a datagram.
        let bytes = harness.sent.reduce(0) { $0 + $1.bytes.count + 20 }
        #expect(bytes * 8 / 20 <= 5_000, "\(bytes * 8 / 20) bit/s")
    }

    @Test("RFC 3550: reports every second with loss, fraction, jitter and the last sender report")
    func receiverReports() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        for index in UInt16(0)..<250 {
            let now = at(Double(index) * 20)
            harness.run(to: now)
            if index == 100 {
                harness.receiveRTCP(
                    {
                        $0.beginSenderReport(
                            ssrc: 0xa, ntpTimestamp: 0x1234_5678_9abc_def0, rtpTimestamp: 96_000, packetCount: 1,
                            octetCount: 1)
                    }, at: now)
            }
            if index % 10 != 3 { harness.receive(Self.audio(index), at: now) }
        }
        harness.run(to: at(5_300))
        let reports = harness.reportBlocks
        #expect(reports.count == 6)
        for (a, b) in zip(reports, reports.dropFirst()) { #expect(b.at - a.at == .seconds(1)) }
        let last = try #require(reports.dropLast().last)
        #expect(last.block.ssrc == 0xa)
        #expect((23...28).contains(last.block.fractionLost), "a tenth is 25.6 / 256")
        #expect((20...26).contains(last.block.cumulativeLost))
        #expect(last.block.jitter < 48)
        #expect(last.block.lastSenderReport == 0x5678_9abc)
        let delay = Double(last.block.delaySinceLastSenderReport) / 65_536
        #expect(abs(delay - (last.at - at(2000)).seconds) < 0.001)
        #expect(reports[0].block.lastSenderReport == 0)
    }

    @Test("Reports about more streams than one datagram holds come every second, too, each datagram with its source")
    func reportsOfManyStreams() {
        let harness = UplinkHarness()
        for number in UInt32(0)..<20 {
            let encodings = (UInt32(0)..<3).map { EncodingDescription(ssrc: 0x100 + 3 * number + $0) }
            let camera = TrackDescription.camera(id: UInt64(number), mid: "\(number)", encodings: encodings)
            _ = harness.uplink.addTrack(camera, at: at(0))
        }
        for index in UInt16(0)..<20 {
            for stream in UInt32(0)..<60 {
                // From the second report on the first datagram has all news, and the second none.
                guard index == 0 || stream < 45 else { continue }
                harness.receive(
                    TestPacket(ssrc: 0x100 + stream, sequence: index, timestamp: UInt32(index) * 9_000),
                    at: at(Double(index) * 100))
            }
            harness.run(to: at(Double(index) * 100 + 99))
        }
        let reports = harness.reportBlocks
        #expect(Set(reports.map(\.at)) == [at(250), at(1_250)])
        #expect(reports.count { $0.at == at(250) } == 60)
        #expect(reports.count { $0.at == at(1_250) } == 45)
        let sources = harness.packets.count { if case .sourceDescription = $0.packet { true } else { false } }
        #expect(harness.sent.count { $0.at == at(250) } == 2)
        #expect(sources == harness.sent.count { $0.at == at(250) || $0.at == at(1_250) })
    }

    @Test("Without received packets no reports are sent")
    func quiet() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        for index in UInt16(0)..<10 { harness.receive(Self.audio(index), at: at(Double(index) * 20)) }
        harness.run(to: at(60_000))
        #expect(harness.reportBlocks.count == 1)
        harness.receive(Self.audio(10), at: at(60_000))
        harness.run(to: at(62_000))
        #expect(harness.reportBlocks.count == 2)
    }

    @Test("Extended reports measure the round trip, and the peer's are answered (RFC 3611)")
    func extendedReports() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(feedback: [.receiverReferenceTime]), at: at(0))
        harness.receive(Self.audio(0), at: at(0))
        harness.run(to: at(300))
        let sent = try #require(
            harness.packets.compactMap { item -> (MonotonicTime, UInt64)? in
                guard case .receiverReferenceTime(let reference) = item.packet else { return nil }
                return (item.at, reference.ntpTimestamp)
            }.first)
        let answer = DelaySinceLastReceiverReport.Item(
            ssrc: UplinkHarness.own, lastReceiverReport: UInt32(truncatingIfNeeded: sent.1 >> 16), delay: 65_536 / 10)
        harness.receiveRTCP(
            { $0.appendDelaySinceLastReceiverReport(ssrc: 0xa, [answer]) }, at: sent.0 + .milliseconds(180))
        let roundTrip = try #require(harness.uplink.roundTripTime(at: sent.0 + .milliseconds(180)))
        #expect(abs(roundTrip.seconds - 0.08) < 0.001)

        harness.receiveRTCP(
            { $0.appendReceiverReferenceTime(ssrc: 0xc, ntpTimestamp: 0x0001_0002_0003_0004) }, at: at(1000))
        harness.run(to: at(3000))
        let answers = harness.packets.compactMap { item -> DelaySinceLastReceiverReport.Item? in
            guard case .delaySinceLastReceiverReport(let answers) = item.packet else { return nil }
            return item.datagram.withUnsafeBytes { answers.item(at: 0, in: $0.bytes) }
        }
        #expect(answers.count == 1 && answers[0].ssrc == 0xc && answers[0].lastReceiverReport == 0x0002_0003)
    }

    // MARK: Rates

    private func maximumBitrates(_ harness: UplinkHarness) -> [UInt64] {
        harness.packets.compactMap { item in
            if case .maximumBitrate(let estimate) = item.packet { estimate.bitsPerSecond } else { nil }
        }
    }

    /// Ten seconds of video at 1 Mbit/s, from a second on.
    private func sendVideo(
        _ harness: UplinkHarness, losing every: Int = .max, seconds: Int = 10, transport: Bool = false
    ) {
        for index in 0..<(seconds * 125) {
            let now = at(Double(index) * 8)
            harness.run(to: now)
            guard index % every != 1 else { continue }
            var packet = TestPacket(
                ssrc: 0xb, sequence: UInt16(truncatingIfNeeded: index), timestamp: UInt32(index) * 720,
                payload: TestPacket.vp8Delta + [UInt8](repeating: 1, count: 980))
            if transport { packet.extensions = [Self.transport(UInt16(truncatingIfNeeded: index))] }
            harness.receive(packet, at: now)
        }
    }

    @Test("REMB for a publisher without transport-wide feedback grows without loss and falls with loss")
    func advice() throws {
        let clean = UplinkHarness()
        _ = clean.uplink.addTrack(.camera(feedback: [.nack, .pli, .remb]), at: at(0))
        sendVideo(clean)
        let grown = maximumBitrates(clean)
        #expect(grown.count >= 9)
        #expect(zip(grown, grown.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(
            try #require(grown.last) > 1_300_000 && grown.last! < 1_700_000, "at most half as much again as is sent")
        let lossy = UplinkHarness()
        _ = lossy.uplink.addTrack(.camera(feedback: [.nack, .pli, .remb]), at: at(0))
        sendVideo(lossy, losing: 4)
        #expect(try #require(maximumBitrates(lossy).last) < 500_000)
    }

    @Test("B13: a cap is signalled beside transport-wide feedback, and lifted when it is removed")
    func maximum() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(maximumBitrate: .kilobitsPerSecond(1_440)), at: at(0))
        sendVideo(harness, seconds: 5, transport: true)
        let reported = maximumBitrates(harness)
        #expect(!reported.isEmpty && reported.allSatisfy { (1_430_000...1_440_000).contains($0) })
        harness.uplink.setMaximumBitrate(TrackID(1), nil)
        sendVideo(harness, seconds: 10, transport: true)
        #expect(try #require(maximumBitrates(harness).last) > 90_000_000)
    }

    @Test("B13: that a cap was lifted is signalled three times, and now and then later, because all three may be lost")
    func liftedLater() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(maximumBitrate: .kilobitsPerSecond(1_440)), at: at(0))
        // Few packets: nobody takes them out of the turn.
        for index in 0..<320 {
            if index == 20 { harness.uplink.setMaximumBitrate(TrackID(1), nil) }
            let now = at(Double(index) * 100)
            harness.run(to: now)
            var packet = TestPacket(
                ssrc: 0xb, sequence: UInt16(index), timestamp: UInt32(index) * 9_000, payload: TestPacket.vp8Delta)
            packet.extensions = [Self.transport(UInt16(index))]
            harness.receive(packet, at: now)
        }
        let lifted = harness.packets.compactMap { item -> MonotonicTime? in
            guard case .maximumBitrate(let estimate) = item.packet else { return nil }
            return estimate.bitsPerSecond > 90_000_000 ? item.at : nil
        }
        #expect(lifted.count { $0 < at(6_000) } == 3)
        #expect((2...3).contains(lifted.count { $0 >= at(6_000) }))
    }

    @Test("No REMB is sent unless it was negotiated")
    func noAdvice() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        sendVideo(harness, transport: true)
        #expect(maximumBitrates(harness).isEmpty)
    }
}

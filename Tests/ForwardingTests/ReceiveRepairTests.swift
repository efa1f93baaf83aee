import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Receive: repair and keyframe requests")
struct ReceiveRepairTests {
    /// Video packets 0, 1, 2, … at 10 ms, without those in `lost`.
    private static func send(_ harness: UplinkHarness, _ range: Range<UInt16>, without lost: Set<UInt16> = []) {
        for number in range {
            let now = at(Double(number) * 10)
            harness.run(to: now)
            guard !lost.contains(number) else { continue }
            harness.receive(TestPacket(sequence: number, timestamp: UInt32(number) * 900), at: now)
        }
    }

    private static func cameraHarness(
        _ description: TrackDescription = .camera(encodings: [EncodingDescription(ssrc: 0x1111, rtxSSRC: 0x2222)])
    ) -> UplinkHarness {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(description, at: at(0))
        return harness
    }

    @Test(
        "G4: a lost packet is requested once per round trip, at most ten times or for a second, then a keyframe is requested"
    )
    func nackUntilGivenUp() {
        let harness = Self.cameraHarness()
        harness.uplink.setRoundTripTime(.milliseconds(60), at: at(0))
        Self.send(harness, 0..<300, without: [50])
        let asked = harness.nacked
        #expect(asked.allSatisfy { $0.number == 50 })
        #expect(asked.count == 10)
        // First after the reorder tolerance, then a round trip apart.
        #expect(asked.first?.at == at(510) + NackGenerator.reorderTolerance)
        for (a, b) in zip(asked, asked.dropFirst()) { #expect(b.at - a.at >= .milliseconds(60)) }
        #expect((harness.keyframeRequests.first ?? at(0)) >= asked.last!.at)
    }

    @Test("G4: with a long round trip a packet is given up when it is too old")
    func tooOld() {
        let harness = Self.cameraHarness()
        harness.uplink.setRoundTripTime(.milliseconds(400), at: at(0))
        Self.send(harness, 0..<300, without: [50])
        #expect(harness.nacked.count == 3)
        #expect(harness.keyframeRequests.first == at(510) + NackGenerator.maximumAge)
    }

    @Test(
        "G4: the first packet of a keyframe is asked for again when it alone is missing, and no other keyframe meanwhile",
        arguments: [Codec.h264, .vp9])
    func beginningOfKeyframe(codec: Codec) {
        let harness = Self.cameraHarness(
            .camera(encodings: [EncodingDescription(ssrc: 0x1111, rtxSSRC: 0x2222)], codec: codec))
        // Three packets of a VP9 keyframe, or parameter sets and two fragments of an IDR picture.
        let payloads: [[UInt8]] =
            codec == .vp9
            ? [[0x08, 0x82, 0x49, 0x83, 0x42, 0], [0x00, 1, 2, 3], [0x04, 1, 2, 3]]
            : [[0x67, 0x42, 0xe0, 0x1f, 0x8c], [0x7c, 0x85, 0x88, 0x80, 1], [0x7c, 0x45, 2, 3]]
        for number in UInt16(0)..<30 where number != 6 {
            let now = at(Double(number) * 10)
            harness.run(to: now)
            let isKey = (6...8).contains(number)
            let delta: [UInt8] = codec == .vp9 ? [0x4c, 1, 2, 3] : [0x41, 0x9a, 1, 2]
            harness.receive(
                TestPacket(
                    sequence: number, timestamp: isKey ? 6_000 : UInt32(number) * 900,
                    marker: !isKey || number == 8, payload: isKey ? payloads[Int(number) - 6] : delta), at: now)
        }
        #expect(Set(harness.nacked.map(\.number)) == [6])
        #expect(harness.nacked.first?.at == at(70) + NackGenerator.reorderTolerance)
    }

    @Test("A packet that arrives after its own retransmission is not reported as lost, one that never arrives is")
    func lateBehindRetransmission() throws {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<20, without: [10, 11])
        func packet(_ number: UInt16) -> TestPacket { TestPacket(sequence: number, timestamp: UInt32(number) * 900) }
        for number in UInt16(10)...11 {
            harness.receive(packet(number).retransmitted(ssrc: 0x2222, payloadType: 97, sequence: number), at: at(200))
        }
        harness.receive(packet(10), at: at(210))
        harness.run(to: at(1_000))
        let block = try #require(harness.reportBlocks.first { $0.block.ssrc == 0x1111 }?.block)
        #expect(block.cumulativeLost == 1)
    }

    @Test(
        "What comes twice, or after its own retransmission, hides no packet that is missing", arguments: [false, true])
    func missingBesideDuplicates(restarts: Bool) throws {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<20, without: [10, 11])
        func packet(_ number: UInt16) -> TestPacket { TestPacket(sequence: number, timestamp: UInt32(number) * 900) }
        harness.receive(packet(10).retransmitted(ssrc: 0x2222, payloadType: 97, sequence: 1), at: at(200))
        for number: UInt16 in [10, 19] { harness.receive(packet(number), at: at(210)) }
        if restarts { harness.receive(packet(30_000), at: at(220)) }
        let layers = try #require(harness.uplink.tracks[0]).statistics(at: at(230)).layers
        #expect(layers[0].packetsLost == 1 && layers[0].packetsRepaired == 1)
    }

    @Test("Parameter sets ahead of a frame that is no keyframe end no request for what was lost before them")
    func setsWithoutKeyframe() throws {
        let harness = Self.cameraHarness(
            .camera(encodings: [EncodingDescription(ssrc: 0x1111, rtxSSRC: 0x2222)], codec: .h264))
        let sets: [UInt16: [UInt8]] = [10: SendCodecTests.sps, 11: SendCodecTests.pps]
        for number in UInt16(0)..<30 where number != 9 {
            let now = at(Double(number) * 10)
            harness.run(to: now)
            // The sets have the time of the frame behind them.
            let frame: UInt16 = sets[number] == nil ? number : 12
            harness.receive(
                TestPacket(
                    sequence: number, timestamp: UInt32(frame) * 900, marker: sets[number] == nil,
                    payload: sets[number] ?? [0x41, 0x9a, 1, 2]), at: now)
        }
        #expect(Set(harness.nacked.map(\.number)) == [9])
        harness.run(to: at(1_500))
        #expect(harness.keyframeRequests == [at(100) + NackGenerator.maximumAge])
        let layers = try #require(harness.uplink.tracks[0]).statistics(at: at(1_500)).layers
        #expect(layers[0].keyframesReceived == 0)
    }

    @Test("A sender of video that repeats nothing is asked for a keyframe when a packet is too late for reordering")
    func withoutRepeats() {
        let harness = Self.cameraHarness(.camera(feedback: [.pli, .transportCC]))
        Self.send(harness, 0..<80, without: [50])
        #expect(harness.nacked.isEmpty)
        #expect(harness.keyframeRequests == [at(510) + NackGenerator.hopelessAge])
    }

    @Test("After a gap that no retransmission can fill a keyframe is asked for, unless one begins there")
    func hopelessGap() {
        for isKeyframe in [false, true] {
            let harness = Self.cameraHarness()
            Self.send(harness, 0..<10)
            harness.receive(
                TestPacket(
                    sequence: 5_000, timestamp: 360_000,
                    payload: isKeyframe ? TestPacket.vp8Keyframe() : TestPacket.vp8Delta), at: at(4_000))
            harness.run(to: at(4_400))
            #expect(harness.keyframeRequests.count == (isKeyframe ? 0 : 1))
            #expect(harness.nacked.isEmpty)
        }
    }

    @Test(
        "A15: another source is asked for a keyframe where the beginning of its first one is lost or too late",
        arguments: [
            (Codec.vp8, [TestPacket.vp8Keyframe(), TestPacket.vp8Middle], [0, 1], 0),
            (.vp8, [TestPacket.vp8Keyframe(), TestPacket.vp8Middle], [1], 1),
            (.vp8, [TestPacket.vp8Keyframe(), TestPacket.vp8Middle], [1, 0], 1),
            // A delimiter ahead of the parameter sets.
            (.h264, [[0x09, 0x10], SendCodecTests.sps, SendCodecTests.pps], [0, 1, 2], 0),
            (.h264, [[0x09, 0x10], SendCodecTests.sps, SendCodecTests.pps], [2], 1),
        ] as [(Codec, [[UInt8]], [Int], Int)])
    func beginningOfSource(codec: Codec, payloads: [[UInt8]], order: [Int], requests: Int) {
        let harness = Self.cameraHarness(.camera(codec: codec))
        let delta: [UInt8] = codec == .vp8 ? TestPacket.vp8Delta : [0x41, 0x9a, 1, 2]
        let mid: [(UInt8, [UInt8])] = [(4, Array("1".utf8))]
        for number in UInt16(0)..<10 {
            let now = at(Double(number) * 10)
            harness.run(to: now)
            harness.receive(
                TestPacket(
                    ssrc: 1, sequence: number, timestamp: UInt32(number) * 900, payload: delta, extensions: mid),
                at: now)
        }
        for part in order {
            harness.receive(
                TestPacket(
                    ssrc: 2, sequence: 500 + UInt16(part), timestamp: 360_000, payload: payloads[part], extensions: mid
                ), at: at(100))
        }
        harness.run(to: at(400))
        #expect(harness.keyframeRequests.count == requests)
        #expect(harness.nacked.isEmpty)
    }

    @Test("Reordering within the tolerance triggers no NACK")
    func reordering() {
        let harness = Self.cameraHarness()
        for (index, number) in [UInt16(0), 1, 3, 2, 4, 6, 5, 7].enumerated() {
            harness.receive(TestPacket(sequence: number), at: at(Double(index) * 4))
            harness.run(to: at(Double(index) * 4))
        }
        harness.run(to: at(200))
        #expect(harness.nacked.isEmpty)
    }

    @Test("A retransmission restores the original packet, ends its requests, and measures the round trip")
    func retransmission() throws {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<20, without: [10])
        harness.run(to: at(200))
        let asked = try #require(harness.nacked.first)
        let packet = TestPacket(
            sequence: 10, timestamp: 9000, payload: TestPacket.vp8Delta + [1, 2, 3], extensions: [(13, [0x02])])
        let now = asked.at + .milliseconds(45)
        let result = harness.receive(packet.retransmitted(ssrc: 0x2222, payloadType: 97, sequence: 500), at: now)
        #expect(result == .stored(layer: 0, sequence: 0x10000 + 10))
        let record = try #require(harness.lastTrack?.stored(0x10000 + 10))
        #expect(record.flags.contains(.repaired))
        #expect(harness.lastTrack?.storedBytes(0x10000 + 10) == packet.bytes)
        #expect(record.extensions[.videoOrientation] != nil, "the orientation survives retransmission")
        #expect(harness.uplink.roundTripTime(at: now) == .milliseconds(45))
        let count = harness.nacked.count
        harness.run(to: at(1500))
        #expect(harness.nacked.count == count)
    }

    @Test("Retransmissions of received packets are probes: not stored, counted separately")
    func probes() {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<10)
        harness.lastTrack?.endTurn()
        let again = TestPacket(sequence: 5, timestamp: 4500).retransmitted(ssrc: 0x2222, payloadType: 97, sequence: 1)
        #expect(harness.receive(again, at: at(101)) == .dropped(.rtpDuplicate))
        var empty = again
        empty.payload = []
        empty.padding = 200
        #expect(harness.receive(empty, at: at(102)) == .dropped(.rtpPaddingOnly))
        var short = again
        short.payload = [1]
        #expect(harness.receive(short, at: at(103)) == .dropped(.rtxMalformed))
    }

    @Test("A retransmission before any media of its layer repairs nothing")
    func repairBeforeMedia() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(rids: ["q"]), at: at(0))
        var packet = TestPacket(sequence: 5).retransmitted(ssrc: 0x2222, payloadType: 97, sequence: 1)
        packet.extensions = [(4, Array("1".utf8)), (11, Array("q".utf8))]
        #expect(harness.receive(packet, at: at(0)) == .dropped(.rtxUnknownStream))
        let media = TestPacket(sequence: 5, extensions: [(4, Array("1".utf8)), (10, Array("q".utf8))])
        #expect(harness.receive(media, at: at(1)) == .stored(layer: 0, sequence: 0x10000 + 5))
        _ = harness.receive(TestPacket(sequence: 7), at: at(2))
        let repair = TestPacket(sequence: 6).retransmitted(ssrc: 0x2222, payloadType: 97, sequence: 2)
        #expect(harness.receive(repair, at: at(30)) == .stored(layer: 0, sequence: 0x10000 + 6))
    }

    @Test("No NACK is sent for a stream that did not negotiate it")
    func audioWithoutNACK() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        for number: UInt16 in [0, 1, 2, 5, 6, 7] {
            harness.receive(
                TestPacket(payloadType: 111, sequence: number, payload: [0x78, 1, 2]), at: at(Double(number) * 20))
        }
        harness.run(to: at(3000))
        #expect(harness.nacked.isEmpty)
    }

    @Test("When more packets are missing than can be repaired a keyframe is requested at once")
    func outage() {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<10)
        harness.run(to: at(900))
        harness.receive(TestPacket(sequence: 800, timestamp: 720_000), at: at(900))
        harness.run(to: at(1000))
        #expect(harness.nacked.isEmpty)
        #expect(harness.keyframeRequests == [at(900)])
    }

    @Test("G5: 100 subscribers that join within 100 ms cause at most two keyframe requests")
    func joins() throws {
        let harness = Self.cameraHarness()
        let track = try #require(harness.uplink.tracks[0])
        for number in UInt16(0)..<50 {
            let now = at(Double(number) * 10)
            harness.run(to: now)
            // The keyframe comes 250 ms after the first request.
            let payload = number == 35 ? TestPacket.vp8Keyframe() : TestPacket.vp8Delta
            harness.receive(TestPacket(sequence: number, timestamp: UInt32(number) * 900, payload: payload), at: now)
            if number >= 10 && number < 20 { for _ in 0..<10 { track.requestKeyframe(layer: 0) } }
        }
        harness.run(to: at(5000))
        #expect(harness.keyframeRequests.count <= 2)
        #expect(harness.keyframeRequests.first == at(100), "the first one is sent at once")
    }

    @Test(
        "G5: requests are repeated until a keyframe arrives, every 500 ms, every second for a screen",
        arguments: [true, false])
    func repeats(isScreen: Bool) throws {
        let harness = Self.cameraHarness(
            .camera(encodings: [EncodingDescription(ssrc: 0x1111)], source: isScreen ? .screen : .camera))
        harness.receive(TestPacket(sequence: 0), at: at(0))
        let track = try #require(harness.uplink.tracks[0])
        track.requestKeyframe(layer: 0)
        for number in UInt16(1)..<25 {
            harness.run(to: at(Double(number) * 100))
            harness.receive(
                TestPacket(sequence: number, timestamp: UInt32(number) * 9000), at: at(Double(number) * 100))
        }
        let requests = harness.keyframeRequests
        #expect(requests.count >= 2)
        for (a, b) in zip(requests.prefix(4), requests.prefix(4).dropFirst()) {
            #expect(b - a == (isScreen ? .seconds(1) : .milliseconds(500)))
        }
        harness.receive(TestPacket(sequence: 25, timestamp: 225_000, payload: TestPacket.vp8Keyframe()), at: at(2500))
        let count = harness.keyframeRequests.count
        harness.run(to: at(4000))
        #expect(harness.keyframeRequests.count == count)
    }

    @Test("FIR with increasing command numbers for a sender without PLI; nothing for one without either")
    func intraRequest() throws {
        let harness = Self.cameraHarness(.camera(encodings: [EncodingDescription(ssrc: 0x1111)], feedback: [.fir]))
        harness.receive(TestPacket(sequence: 0), at: at(0))
        try #require(harness.uplink.tracks[0]).requestKeyframe(layer: 0)
        harness.run(to: at(600))
        let commands = harness.packets.compactMap { item -> UInt8? in
            guard case .fullIntraRequest(let request) = item.packet else { return nil }
            return item.datagram.withUnsafeBytes { request.entry(at: 0, in: $0.bytes).sequenceNumber }
        }
        #expect(commands == [0, 1])
        let silent = Self.cameraHarness(.camera(encodings: [EncodingDescription(ssrc: 0x1111)], feedback: []))
        silent.receive(TestPacket(sequence: 0), at: at(0))
        try #require(silent.uplink.tracks[0]).requestKeyframe(layer: 0)
        silent.run(to: at(3000))
        #expect(silent.keyframeRequests.isEmpty)
    }

    @Test("A silent sender gets no further request until it sends again")
    func silentSender() throws {
        let harness = Self.cameraHarness()
        Self.send(harness, 0..<10)
        try #require(harness.uplink.tracks[0]).requestKeyframe(layer: 0)
        harness.run(to: at(60_000))
        let count = harness.keyframeRequests.count
        #expect(count <= 8)
        harness.receive(TestPacket(sequence: 10, timestamp: 5_400_000), at: at(60_000))
        harness.run(to: at(60_050))
        #expect(harness.keyframeRequests.count == count + 1)
    }

    @Test(
        "After renegotiation to a sender without keyframe requests the pending request is dropped, and no deadline remains"
    )
    func withdrawnFeedback() throws {
        let encodings = [EncodingDescription(ssrc: 0x1111)]
        let harness = Self.cameraHarness(.camera(encodings: encodings))
        harness.receive(TestPacket(sequence: 0), at: at(0))
        try #require(harness.uplink.tracks[0]).requestKeyframe(layer: 0)
        harness.uplink.updateTrack(.camera(encodings: encodings, feedback: [.nack, .transportCC]))
        harness.flush(at: at(10))
        #expect(harness.uplink.nextDeadline > at(10))
        #expect(harness.keyframeRequests.isEmpty)
    }

    @Test(
        "G5: a keyframe of a stopped simulcast layer is requested a few times, and again on new demand"
    )
    func stoppedLayer() throws {
        let harness = Self.cameraHarness(
            .camera(encodings: [EncodingDescription(ssrc: 0x1111), EncodingDescription(ssrc: 0x1112)]))
        let track = try #require(harness.uplink.tracks[0])
        func send(_ numbers: Range<Int>, both: Bool) {
            for number in numbers {
                let now = at(Double(number) * 33)
                harness.run(to: now)
                for ssrc: UInt32 in both ? [0x1111, 0x1112] : [0x1111] {
                    harness.receive(
                        TestPacket(ssrc: ssrc, sequence: UInt16(number), timestamp: UInt32(number) * 3_000), at: now)
                }
            }
        }
        send(0..<30, both: true)
        track.requestKeyframe(layer: 1)
        // Half a minute.
        send(30..<1_000, both: false)
        #expect((1...5).contains(harness.keyframeRequests.count), "\(harness.keyframeRequests.count)")
        let count = harness.keyframeRequests.count
        track.requestKeyframe(layer: 1)
        send(1_000..<1_010, both: false)
        #expect(harness.keyframeRequests.count == count + 1)
    }
}

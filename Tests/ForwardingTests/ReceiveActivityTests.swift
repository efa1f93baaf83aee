import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Receive: activity, frames, size, clocks")
struct ReceiveActivityTests {
    private func harness(_ description: TrackDescription = .camera()) -> UplinkHarness {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(description, at: at(0))
        return harness
    }

    /// Delta frames of one packet at the given distance.
    private func send(
        _ harness: UplinkHarness, from start: Double, to end: Double, every step: Double, number: inout UInt16
    ) {
        var moment = start
        while moment < end {
            harness.run(to: at(moment))
            harness.receive(
                TestPacket(sequence: number, timestamp: UInt32(moment * 90), marker: true), at: at(moment))
            harness.lastTrack?.endTurn()
            number &+= 1
            moment += step
        }
        harness.run(to: at(end))
    }

    @Test("A11, B9: 5 fps, 4 fps and a frame every 2 s for 5 min: not silent, no keyframe requests, layer active")
    func lowRates() throws {
        let harness = harness()
        var number: UInt16 = 0
        send(harness, from: 0, to: 60_000, every: 200, number: &number)
        #expect(
            abs(try #require(harness.uplink.tracks[0]).statistics(at: at(60_000)).layers[0].framesPerSecond - 5) < 0.6)
        send(harness, from: 60_000, to: 120_000, every: 250, number: &number)
        send(harness, from: 120_000, to: 420_000, every: 2000, number: &number)
        #expect(harness.events == [.trackStarted(TrackID(1), .vp8)])
        #expect(harness.keyframeRequests.isEmpty)
        #expect(harness.nacked.isEmpty)
        let statistics = try #require(harness.uplink.tracks[0]).statistics(at: at(420_000))
        #expect(statistics.layers[0].isActive && !statistics.isSilent)
        #expect(abs(statistics.layers[0].framesPerSecond - 0.5) < 0.1)
        #expect(statistics.layers[0].bitrate < .kilobitsPerSecond(5))
    }

    @Test("A16, B19: video that stops is reported silent once, after 2 to 5 s, and resumed by its next packet")
    func background() throws {
        let harness = harness()
        var number: UInt16 = 0
        send(harness, from: 0, to: 1000, every: 33, number: &number)
        var silentAt: Double?
        for moment in stride(from: 1000.0, to: 20_000, by: 50) {
            harness.run(to: at(moment))
            if silentAt == nil, harness.events.contains(.trackSilent(TrackID(1))) { silentAt = moment }
        }
        #expect((3000...6000).contains(try #require(silentAt)))
        #expect(harness.events.filter { $0 == .trackSilent(TrackID(1)) }.count == 1)
        #expect(!(try #require(harness.uplink.tracks[0]).isActive(layer: 0, at: at(20_000))))
        send(harness, from: 20_000, to: 20_100, every: 33, number: &number)
        #expect(harness.events.last == .trackResumed(TrackID(1)))
    }

    @Test("A6: interrupted audio is resumed by its first packet", arguments: [5.0, 30, 120])
    func interruption(seconds: Double) throws {
        let harness = harness(.microphone())
        for index in UInt16(0)..<100 {
            harness.receive(
                TestPacket(
                    payloadType: 111, sequence: 65_000 &+ index, timestamp: UInt32(index) * 960, payload: [0x78, 1]),
                at: at(Double(index) * 20))
        }
        harness.run(to: at(2000 + seconds * 1000))
        #expect(harness.events.contains(.trackSilent(TrackID(2))))
        // The numbers went on while nothing arrived, across the wrap.
        let number = UInt16(truncatingIfNeeded: 65_100 + Int(seconds * 50))
        let result = harness.receive(
            TestPacket(
                payloadType: 111, sequence: number, timestamp: 96_000 + UInt32(seconds) * 48_000, payload: [0x78, 1]),
            at: at(2000 + seconds * 1000))
        guard case .stored = result else {
            Issue.record("\(result)")
            return
        }
        #expect(harness.events.last == .trackResumed(TrackID(2)))
    }

    @Test("RTCP BYE makes a stream silent at once; the SSRC may return")
    func goodbye() {
        let harness = harness()
        var number: UInt16 = 0
        send(harness, from: 0, to: 300, every: 33, number: &number)
        harness.receiveRTCP({ $0.appendGoodbye([0x1111]) }, at: at(300))
        harness.run(to: at(310))
        #expect(harness.events.last == .trackSilent(TrackID(1)))
        send(harness, from: 400, to: 500, every: 33, number: &number)
        #expect(harness.events.last == .trackResumed(TrackID(1)))
    }

    @Test("A12, D10: twenty changes of size are reported with their keyframes")
    func sizes() throws {
        let harness = harness()
        let sizes: [(UInt16, UInt16)] = (0..<20).map { $0 % 2 == 0 ? (375, 667 + UInt16($0)) : (896, 414) }
        for (index, size) in sizes.enumerated() {
            let now = at(Double(index) * 500)
            harness.receive(
                TestPacket(
                    sequence: UInt16(index), timestamp: UInt32(index) * 45_000,
                    payload: TestPacket.vp8Keyframe(size.0, size.1)), at: now)
            #expect(
                harness.events.last == .trackDimensions(TrackID(1), layer: 0, width: Int(size.0), height: Int(size.1)))
        }
        // The same size again says nothing.
        let count = harness.events.count
        harness.receive(
            TestPacket(sequence: 20, timestamp: 900_000, payload: TestPacket.vp8Keyframe(896, 414)), at: at(10_000))
        #expect(harness.events.count == count)
        #expect(try #require(harness.uplink.tracks[0]).statistics(at: at(10_000)).layers[0].keyframesReceived == 21)
    }

    @Test(
        "A size that changes with each packet is announced four times a second, the last one too; goodbyes once a second"
    )
    func restlessPublisher() throws {
        let harness = harness()
        var goodbyes = 0
        for index in 0..<1_000 {
            let now = at(Double(index))
            harness.run(to: now)
            harness.receive(
                TestPacket(
                    sequence: UInt16(index), timestamp: UInt32(index) * 90,
                    payload: TestPacket.vp8Keyframe(index % 2 == 0 ? 320 : 640, 180)), at: now)
            guard index % 2 == 1 else { continue }
            harness.receiveRTCP({ $0.appendGoodbye([0x1111]) }, at: now)
            goodbyes += 1
        }
        harness.run(to: at(1_300))
        let sizes = harness.events.compactMap { event in
            if case .trackDimensions(_, _, let width, _) = event { width } else { nil }
        }
        #expect((4...6).contains(sizes.count) && sizes.last == 640, "\(sizes)")
        #expect(goodbyes == 500)
        #expect((1...2).contains(harness.events.count { $0 == .trackSilent(TrackID(1)) }))
        #expect((1...2).contains(harness.events.count { $0 == .trackResumed(TrackID(1)) }))
    }

    @Test("A5: a timestamp step under the same SSRC is no new stream and no jitter, and triggers no NACK or PLI")
    func timestampStep() throws {
        let harness = harness(.microphone())
        for index in UInt16(0)..<200 {
            let step: UInt32 = index < 100 ? 0 : 3_000_000_000
            harness.receive(
                TestPacket(
                    payloadType: 111, sequence: index, timestamp: UInt32(index) * 960 &+ step, marker: index == 100,
                    payload: [0x78, 1]), at: at(Double(index) * 20))
        }
        harness.run(to: at(4000))
        let track = try #require(harness.uplink.tracks[0])
        #expect(track.arrivals.map(\.sequence) == (0..<200).map { 0x10000 + $0 })
        #expect(harness.events == [.trackStarted(TrackID(2), .opus)])
        #expect(track.statistics(at: at(4000)).layers[0].jitterMilliseconds < 2)
        #expect(track.layer(0).pointee.frames.count == 200)
        #expect(harness.nacked.isEmpty && harness.keyframeRequests.isEmpty)
    }

    @Test("A4: audio packets of 10 to 120 ms in one stream: none lost, timestamps unchanged")
    func packetSizes() throws {
        let harness = harness(.microphone())
        var timestamp: UInt32 = 0, moment = 0.0
        var stamps: [Int64] = []
        for (index, milliseconds) in (0..<200).map({ ($0, [10, 20, 40, 60, 120][$0 % 5]) }) {
            harness.receive(
                TestPacket(payloadType: 111, sequence: UInt16(index), timestamp: timestamp, payload: [0x78, 1]),
                at: at(moment))
            stamps.append(0x1_0000_0000 + Int64(timestamp))
            timestamp += UInt32(milliseconds) * 48
            moment += Double(milliseconds)
        }
        let track = try #require(harness.uplink.tracks[0])
        let stored = track.arrivals.compactMap { track.stored($0.sequence)?.timestamp }
        #expect(stored.count >= 20 && stored == Array(stamps.suffix(stored.count)))
        #expect(track.statistics(at: at(moment)).layers[0].packetsLost == 0)
        #expect(track.statistics(at: at(moment)).layers[0].jitterMilliseconds < 1)
    }

    @Test("B7, B8: the measured frame rate follows changes within 2 s, and no frame is lost")
    func cadence() throws {
        let harness = harness()
        var number: UInt16 = 0, start = 0.0
        for rate in [120.0, 2, 30, 15, 24, 25, 60] {
            send(harness, from: start, to: start + 6000, every: 1000 / rate, number: &number)
            start += 6000
            let measured = try #require(harness.uplink.tracks[0]).statistics(at: at(start)).layers[0].framesPerSecond
            #expect(abs(measured - rate) <= max(0.6, rate * 0.08), "\(measured) for \(rate)")
        }
        let layer = try #require(harness.uplink.tracks[0]).statistics(at: at(start)).layers[0]
        #expect(layer.framesReceived == UInt64(number) && layer.packetsLost == 0)
    }

    @Test("A stopped simulcast layer is detected while others continue; low frame rates are not mistaken for it")
    func stoppedLayer() throws {
        let harness = harness(.camera(encodings: [EncodingDescription(ssrc: 1), EncodingDescription(ssrc: 2)]))
        let track = try #require(harness.uplink.tracks[0])
        for index in UInt16(0)..<150 {
            let now = at(Double(index) * 33)
            harness.receive(TestPacket(ssrc: 1, sequence: index, timestamp: UInt32(index) * 3000), at: now)
            if index < 60 {
                harness.receive(TestPacket(ssrc: 2, sequence: index, timestamp: UInt32(index) * 3000), at: now)
            }
            if index == 60 { #expect(track.isActive(layer: 1, at: now)) }
        }
        #expect(track.isActive(layer: 0, at: at(149 * 33)))
        #expect(!track.isActive(layer: 1, at: at(60 * 33 + 1500)))
        let slow = self.harness(.camera(encodings: [EncodingDescription(ssrc: 1), EncodingDescription(ssrc: 2)]))
        let slowTrack = try #require(slow.uplink.tracks[0])
        for index in UInt16(0)..<20 {
            let now = at(Double(index) * 2000)
            slow.receive(TestPacket(ssrc: 1, sequence: index, timestamp: UInt32(index) * 180_000), at: now)
            #expect(index == 0 || slowTrack.isActive(layer: 1, at: now))
            slow.receive(
                TestPacket(ssrc: 2, sequence: index, timestamp: UInt32(index) * 180_000), at: now + .milliseconds(5))
        }
    }

    @Test("A keyframe that is whole in the history serves a late subscriber; an incomplete or old one does not")
    func replay() throws {
        let harness = harness()
        let track = try #require(harness.uplink.tracks[0])
        func start(_ now: MonotonicTime) -> Int64? {
            track.layer(0).pointee.replayStart(at: now, maximumAge: .milliseconds(400))
        }
        harness.receive(TestPacket(sequence: 0, timestamp: 0), at: at(0))
        #expect(start(at(0)) == nil)
        harness.receive(TestPacket(sequence: 1, timestamp: 3000, payload: TestPacket.vp8Keyframe()), at: at(33))
        harness.receive(
            TestPacket(sequence: 2, timestamp: 3000, marker: true, payload: TestPacket.vp8Middle), at: at(34))
        harness.receive(TestPacket(sequence: 3, timestamp: 6000), at: at(66))
        #expect(start(at(70)) == 0x10001)
        #expect(start(at(500)) == nil)
        harness.receive(TestPacket(sequence: 5, timestamp: 9000), at: at(100))
        #expect(start(at(101)) == nil)
        harness.receive(TestPacket(sequence: 4, timestamp: 6000, payload: TestPacket.vp8Middle), at: at(104))
        #expect(start(at(105)) == 0x10001)
    }
}

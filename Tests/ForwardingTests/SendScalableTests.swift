import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Send: spatial layers in one stream")
struct SendScalableTests {
    /// One VP9 layer frame packet: I, L, B, E, inter-picture prediction P, inter-layer D.
    private func vp9(
        _ sequence: UInt16, _ timestamp: UInt32, layer: UInt8, key: Bool, marker: Bool, picture: UInt8,
        starts: Bool = true, ends: Bool = true
    ) -> [UInt8] {
        var payload: [UInt8] = [
            0x80 | (key ? 0 : 0x40) | 0x20 | (starts ? 0x08 : 0) | (ends ? 0x04 : 0), 0x80, picture,
        ]
        payload += [layer << 1 | (layer > 0 ? 1 : 0), picture]
        payload += [0x82, 0x49, 0x83, 0x42, layer, layer]
        return TestPacket(
            ssrc: 0x100, payloadType: 98, sequence: sequence, timestamp: timestamp, marker: marker, payload: payload
        ).bytes
    }

    private func vp9Harness(_ preference: LayerPreference = .best) -> SendHarness {
        let accepted = PayloadFormat(codec: .vp9, payloadType: 33, rtxPayloadType: 34, clockRateHz: 90_000)
        return SendHarness(
            SendSession.track(formats: [SendSession.vp9]),
            SendSession.subscription(formats: [accepted], preference: preference))
    }

    @Test(
        "A frame whose upper layers the encoder dropped gets its marker when the next frame starts, or after 100 ms"
    )
    func markerRepair() {
        let harness = vp9Harness()
        harness.turn(
            (0..<3).map { vp9(UInt16($0), 0, layer: UInt8($0), key: true, marker: $0 == 2, picture: 1) }, at: at(0))
        #expect(harness.out.map(\.header.marker) == [false, false, true])
        // Two layers of three, no marker anywhere.
        harness.turn(
            (0..<2).map { vp9(3 + UInt16($0), 3_000, layer: UInt8($0), key: false, marker: false, picture: 2) },
            at: at(33))
        #expect(harness.out.count == 4)
        #expect(harness.subscription.pointee.heldUntil == at(133))
        harness.turn([vp9(5, 6_000, layer: 0, key: false, marker: false, picture: 3)], at: at(40))
        #expect(harness.out.count == 5)
        #expect(harness.out[4].header.marker)
        harness.endTurn(at: at(140))
        #expect(harness.out.count == 6)
        #expect(harness.out[5].header.marker)
        #expect(harness.subscription.pointee.heldUntil == .distantFuture)
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
    }

    @Test("Numbers that restart with a packet above the subscriber's layers leave no gap")
    func restartAboveTheCap() {
        let harness = vp9Harness(.spatial(0))
        for turn in 0..<5 {
            harness.turn(
                (0..<2).map {
                    vp9(
                        UInt16(turn * 2 + $0), UInt32(turn) * 3_000, layer: UInt8($0), key: turn == 0, marker: $0 == 1,
                        picture: UInt8(turn))
                }, at: at(Double(turn) * 33))
        }
        for turn in 0..<5 {
            var packets = (0..<2).map {
                vp9(
                    UInt16(9_000 + turn * 2 + $0), UInt32(900_000 + turn * 3_000), layer: UInt8($0), key: turn == 1,
                    marker: $0 == 1, picture: UInt8(50 + turn))
            }
            if turn == 0 { packets.removeFirst() }
            harness.turn(packets, at: at(200 + Double(turn) * 33))
        }
        #expect(harness.out.count == 9)
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
    }

    @Test("G8: a subscriber of the lowest spatial layer gets dense numbers and a marker on each frame")
    func spatialCap() {
        let harness = vp9Harness(.spatial(0))
        for turn in 0..<10 {
            let packets = (0..<3).map {
                vp9(
                    UInt16(turn * 3 + $0), UInt32(turn) * 3_000, layer: UInt8($0), key: turn == 0, marker: $0 == 2,
                    picture: UInt8(turn))
            }
            harness.turn(packets, at: at(Double(turn) * 33))
        }
        #expect(harness.out.count == 10)
        #expect(harness.out.allSatisfy { $0.header.marker })
        let cap = harness.subscription.pointee.spatialCap
        #expect(cap == 0)
        for (before, after) in zip(harness.out, harness.out.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        // More layers come with the next keyframe, which is asked for.
        _ = harness.subscription.pointee.setPreference(.best, track: harness.track, at: at(400))
        harness.turn(
            (0..<3).map { vp9(30 + UInt16($0), 40_000, layer: UInt8($0), key: false, marker: $0 == 2, picture: 20) },
            at: at(400))
        #expect(harness.out.count == 11)
        #expect(harness.signals.last?.contains(.wantsKeyframe) == true)
        harness.turn(
            (0..<3).map { vp9(33 + UInt16($0), 43_000, layer: UInt8($0), key: true, marker: $0 == 2, picture: 21) },
            at: at(433))
        #expect(harness.out.count == 14)
        let uncapped = harness.subscription.pointee.spatialCap
        #expect(uncapped >= 2)
    }

    @Test("Layers of which none was left out since the last keyframe follow without another; of others one is missing")
    func nothingLeftOut() {
        let harness = vp9Harness(.spatial(0))
        var sequence: UInt16 = 0
        func picture(_ number: Int, layers: Int, key: Bool) {
            let packets = (0..<layers).map {
                vp9(
                    sequence + UInt16($0), UInt32(number) * 3_000, layer: UInt8($0), key: key,
                    marker: $0 == layers - 1, picture: UInt8(number))
            }
            sequence += UInt16(layers)
            harness.turn(packets, at: at(Double(number) * 33))
        }
        func needsKeyframe(_ preference: LayerPreference, at milliseconds: Double) -> Bool {
            harness.subscription.pointee.setPreference(preference, track: harness.track, at: at(milliseconds))
        }
        // The upper layer of the first keyframe is left out, and the second keyframe has none.
        picture(0, layers: 2, key: true)
        #expect(needsKeyframe(.best, at: 10))
        #expect(!needsKeyframe(.spatial(0), at: 20))
        picture(1, layers: 1, key: true)
        #expect(!needsKeyframe(.best, at: 40))
        picture(2, layers: 2, key: false)
        #expect(harness.out.count == 4)
        #expect(harness.out.map(\.header.marker) == [true, true, false, true])
    }

    @Test("H2: packets lost before spatial layers were dropped are repaired by a keyframe, requested once")
    func refreshAfterGivingUp() {
        let harness = vp9Harness()
        func picture(_ number: Int, key: Bool) {
            let packets = (0..<3).map {
                vp9(
                    UInt16(number * 3 + $0), UInt32(number) * 3_000, layer: UInt8($0), key: key, marker: $0 == 2,
                    picture: UInt8(number))
            }
            harness.turn(packets, at: at(Double(number) * 33))
        }
        /// Whether a NACK of the packet written `back` packets ago asks for a keyframe.
        func asks(_ back: Int) -> Bool {
            _ = harness.repeats(of: harness.out[harness.out.count - 1 - back].header.sequenceNumber, at: at(400))
            return harness.subscription.pointee.consumeRepair()
        }
        for number in 0..<5 { picture(number, key: number == 0) }
        #expect(!asks(2), "nothing was given up: a repeat does")
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: 0, temporal: 2)), track: harness.track, at: at(170))
        for number in 6..<9 { picture(number, key: false) }
        #expect(harness.out.count == 18)
        #expect(!asks(1), "the lower layer's own packet")
        #expect(asks(5))
        #expect(!asks(6), "once")
        // Again given up, but the keyframe was first.
        _ = harness.subscription.pointee.setBound(.unlimited, track: harness.track, at: at(310))
        picture(10, key: true)
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: 1, temporal: 2)), track: harness.track, at: at(350))
        picture(11, key: false)
        picture(12, key: true)
        #expect(!asks(6))
    }

    @Test("G8: a top layer that arrives 30 ms behind the others belongs to its frame: one marker, at its end")
    func lateTopLayer() {
        let harness = vp9Harness()
        for picture in 0..<10 {
            let time = Double(picture) * 40
            let packets = (0..<3).map {
                vp9(
                    UInt16(picture * 3 + $0), UInt32(picture) * 3_600, layer: UInt8($0), key: picture == 0,
                    marker: $0 == 2, picture: UInt8(picture))
            }
            harness.turn(Array(packets[..<2]), at: at(time))
            for wait in [10.0, 20] { harness.endTurn(at: at(time + wait)) }
            harness.turn(Array(packets[2...]), at: at(time + 30))
        }
        #expect(harness.out.count == 30)
        #expect(harness.out.enumerated().allSatisfy { $1.header.marker == ($0 % 3 == 2) })
    }

    @Test("G8: a top layer that is lost and repaired is not cut off by a marker")
    func lostTopLayer() {
        let harness = vp9Harness()
        func packet(_ number: Int) -> [UInt8] {
            vp9(
                UInt16(number), UInt32(number / 3) * 3_000, layer: UInt8(number % 3), key: number < 3,
                marker: number % 3 == 2, picture: UInt8(number / 3))
        }
        harness.turn((0..<3).map(packet), at: at(0))
        harness.turn((3..<5).map(packet), at: at(33))
        harness.turn((6..<9).map(packet), at: at(66))
        harness.turn([packet(5)], at: at(90))
        #expect(harness.out.count == 9)
        let first = harness.out[0].header.sequenceNumber
        for written in harness.out {
            #expect(written.header.marker == ((written.header.sequenceNumber &- first) % 3 == 2))
        }
    }

    @Test("G8: an upper layer that is dropped stays out of its frame, in whichever order its packets arrive")
    func lateAndGivenUp() {
        let harness = vp9Harness()
        harness.turn(
            (0..<2).map { vp9(UInt16($0), 0, layer: UInt8($0), key: true, marker: $0 == 1, picture: 1) }, at: at(0))
        _ = harness.subscription.pointee.setPreference(.spatial(0), track: harness.track, at: at(10))
        // Two packets of the lower layer and four of the upper one, of which the last comes first: with it the layer is given up.
        func part(_ number: Int) -> [UInt8] {
            vp9(
                UInt16(2 + number), 3_000, layer: number < 2 ? 0 : 1, key: false, marker: number == 5, picture: 2,
                starts: number == 0 || number == 2, ends: number == 1 || number == 5)
        }
        for (turn, number) in [5, 0, 2, 1].enumerated() {
            harness.turn([part(number)], at: at(120 + Double(turn)))
        }
        let written = harness.out.dropFirst(2).sorted { $0.header.sequenceNumber < $1.header.sequenceNumber }
        #expect(written.map { $0.header.payloadLength > 0 } == [true, true, false])
        #expect(written.map(\.header.marker) == [false, true, false])
    }

    @Test("A packet that waits for the end of its frame when a subscription starts in the same turn is sent once")
    func heldWithinTurn() {
        let harness = vp9Harness()
        // The keyframe's first two layers in one turn: the viewer begins with both, and the second waits.
        harness.turn(
            (0..<2).map { vp9(UInt16($0), 0, layer: UInt8($0), key: true, marker: false, picture: 1) }, at: at(0))
        #expect(harness.out.count == 1)
        harness.turn([vp9(2, 0, layer: 2, key: true, marker: true, picture: 1)], at: at(12))
        #expect(harness.out.count == 3)
        #expect(harness.out.map(\.header.marker) == [false, false, true])
    }

    @Test("G1: a pause while a packet waits for the end of its frame leaves no gap")
    func pausedWithinFrame() {
        let harness = vp9Harness()
        harness.turn(
            (0..<2).map { vp9(UInt16($0), 0, layer: UInt8($0), key: true, marker: false, picture: 1) }, at: at(0))
        _ = harness.setPaused(true)
        harness.turn([vp9(2, 0, layer: 2, key: true, marker: true, picture: 1)], at: at(12))
        _ = harness.setPaused(false)
        harness.turn(
            (0..<3).map { vp9(3 + UInt16($0), 90_000, layer: UInt8($0), key: true, marker: $0 == 2, picture: 2) },
            at: at(1_000))
        #expect(harness.out.count == 4)
        #expect(harness.out[1].header.sequenceNumber == harness.out[0].header.sequenceNumber &+ 1)
    }
}

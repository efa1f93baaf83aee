import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Output numbers of a subscription")
struct SendNumberingTests {
    /// A single-stream VP8 subscription that has begun, and the encoder behind it.
    private func begun(rtx: Bool = true) -> (SendHarness, VP8Encoder) {
        let harness = SendHarness(SendSession.track(), SendSession.subscription(rtx: rtx))
        var layer = VP8Encoder.simulcast()[0]
        harness.turn(layer.frame(keyframe: true), at: at(0))
        return (harness, layer)
    }

    private func isDense(_ packets: [WrittenPacket]) -> Bool {
        zip(packets, packets.dropFirst()).allSatisfy { $1.header.sequenceNumber == $0.header.sequenceNumber &+ 1 }
    }

    @Test("Sequence numbers of the publisher's padding leave no gap")
    func paddingCloses() {
        var (harness, layer) = begun()
        for turn in 1..<50 {
            var packets = layer.frame(keyframe: false)
            if turn % 2 == 0 { packets.insert(layer.padding(200), at: 3) }
            if turn % 5 == 0 { packets += [layer.padding(200), layer.padding(200)] }
            harness.turn(packets, at: at(Double(turn) * 33))
        }
        #expect(harness.out.count == 150)
        #expect(isDense(harness.out))
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors.prefix(3))")
    }

    @Test(
        "Numbers that restart with padding leave no gap: a jump over half of all numbers would end the stream under SRTP"
    )
    func restartWithPadding() {
        var (harness, layer) = begun()
        for turn in 1..<5 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33)) }
        layer.sequence &+= 40_000
        harness.turn([layer.padding(200), layer.padding(200)], at: at(1_000))
        for turn in 0..<5 { harness.turn(layer.frame(keyframe: turn == 0), at: at(1_033 + Double(turn) * 33)) }
        #expect(harness.out.count == 30)
        #expect(isDense(harness.out))
    }

    @Test(
        "Numbers that restart just behind padding: frame numbers continue from the last frame sent, not from an earlier stop"
    )
    func restartBehindPadding() {
        var (harness, layer) = begun()
        for turn in 1..<5 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33)) }
        harness.subscription.pointee.stop(harness.track)
        for turn in 5..<25 { harness.turn(layer.frame(keyframe: turn == 5), at: at(Double(turn) * 33)) }
        harness.turn([layer.padding(200)], at: at(825))
        layer.sequence &+= 5_000
        layer.pictureID = (layer.pictureID + 5_000) & 0x7fff
        layer.temporalZero &+= 100
        for turn in 0..<5 { harness.turn(layer.frame(keyframe: turn == 0), at: at(860 + Double(turn) * 33)) }
        #expect(harness.out.count == 90)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors.prefix(3))")
    }

    @Test("C6: the first packet after a mute belongs to a keyframe: numbers continue from the last frame sent")
    func keyframeFirstAfterMute() {
        var (harness, layer) = begun()
        for turn in 1..<5 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33)) }
        harness.uplink.setMuted(TrackID(1), true)
        harness.subscription.pointee.stop(harness.track)
        for turn in 5..<9 { harness.turn(layer.frame(keyframe: false), at: at(Double(turn) * 33)) }
        #expect(harness.out.count == 15, "the young keyframe from before the mute is no beginning")
        harness.uplink.setMuted(TrackID(1), false)
        harness.subscription.pointee.stop(harness.track)
        for turn in 9..<14 { harness.turn(layer.frame(keyframe: turn == 9), at: at(Double(turn) * 33)) }
        #expect(harness.out.count == 30)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors.prefix(3))")
    }

    @Test("A packet lost on the uplink leaves a gap, and gets its number when it is repaired")
    func lossKeepsGap() {
        var (harness, layer) = begun()
        var packets = layer.frame(keyframe: false)
        let late = packets.remove(at: 1)
        harness.turn(packets + layer.frame(keyframe: false), at: at(33))
        let numbers = harness.out.map(\.header.sequenceNumber)
        #expect(numbers.count == 8)
        #expect(numbers[4] == numbers[3] &+ 2)
        harness.turn([late], at: at(60))
        #expect(harness.out.count == 9)
        #expect(harness.out[8].header.sequenceNumber == numbers[3] &+ 1)
        #expect(harness.out[8].pictureID == harness.out[3].pictureID)
        harness.turn([late], at: at(61))
        #expect(harness.out.count == 9)
    }

    /// Eleven frames are 33 packets: the last one has the slot in the history of the last packet before the loss.
    @Test(
        "Frames that come late have used their numbers: those of the keyframe after a stop follow them",
        arguments: [3, 11])
    func keyframeAfterLateFrames(frames: Int) {
        var (harness, layer) = begun()
        var late: [[UInt8]] = []
        for _ in 0..<frames { late += layer.frame(keyframe: false) }
        harness.turn([layer.padding(200)], at: at(1_200))
        #expect(harness.out.count == 3)
        harness.turn(late, at: at(1_300))
        #expect(harness.out.count == 3 + 3 * frames)
        harness.subscription.pointee.stop(harness.track)
        harness.turn(layer.frame(keyframe: true), at: at(1_400))
        #expect(harness.out.count == 6 + 3 * frames)
        var checker = ContinuityChecker()
        checker.check(harness.out)
        #expect(checker.errors.isEmpty, "\(checker.errors.prefix(3))")
    }

    @Test("Loss beside padding: the lost packet keeps its number, the padding has none")
    func lossAndPadding() {
        var (harness, layer) = begun()
        var packets = layer.frame(keyframe: false)
        packets.append(layer.padding(200))
        packets += layer.frame(keyframe: false)
        let late = packets.remove(at: 2)
        harness.turn(packets, at: at(33))
        harness.turn([late], at: at(50))
        let numbers = Set(harness.out.map(\.header.sequenceNumber))
        let first = harness.out[0].header.sequenceNumber
        #expect(numbers == Set((0..<9).map { first &+ UInt16($0) }))
    }

    @Test("A gap that turns out to be padding is filled with padding")
    func latePadding() {
        var (harness, layer) = begun()
        let late = layer.padding(200)
        harness.turn(layer.frame(keyframe: false), at: at(33))
        #expect(harness.out.count == 6)
        harness.turn([late], at: at(40))
        #expect(harness.out.count == 7)
        let filler = harness.out[6]
        #expect(filler.header.sequenceNumber == harness.out[2].header.sequenceNumber &+ 1)
        #expect(filler.header.payloadLength == 0)
        #expect(filler.header.paddingLength == 1)
        #expect(filler.header.payloadType == 120)
    }

    @Test("A late packet of a layer gets its number even after a switch")
    func lateAfterSwitch() {
        let harness = SendHarness(SendSession.track(layers: 3), SendSession.subscription(preference: .spatial(0)))
        var layers = VP8Encoder.simulcast()
        for index in 0..<3 { harness.turn(layers[index].frame(keyframe: true), at: at(0)) }
        var low = layers[0].frame(keyframe: false)
        let late = low.remove(at: 0)
        harness.turn(low, at: at(33))
        _ = harness.subscription.pointee.setPreference(.spatial(2), track: harness.track, at: at(300))
        harness.turn(layers[2].frame(keyframe: true), at: at(340))
        #expect(harness.layer == 2)
        harness.turn([late], at: at(350))
        let numbers = harness.out.map(\.header.sequenceNumber)
        #expect(Set(numbers).count == numbers.count)
        #expect(harness.out.last?.header.sequenceNumber == numbers[2] &+ 1)
    }

    @Test("A5: a timestamp jump under one SSRC is forwarded unchanged, and the sequence numbers continue")
    func jumps() {
        var (harness, layer) = begun()
        harness.turn(layer.frame(keyframe: false), at: at(33))
        layer.timestamp &+= 1_000_000
        harness.turn(layer.frame(keyframe: false), at: at(66))
        let jump = harness.out[6].header.timestamp &- harness.out[5].header.timestamp
        #expect(jump == 1_003_000)
        #expect(isDense(harness.out))
    }

    @Test("Both numberings roll over at once")
    func rollOver() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        for turn in 0..<25_000 { harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33)) }
        #expect(harness.out.count == 75_000)
        #expect(isDense(harness.out))
    }

    /// A picture of two packets as Pion's VP8 payloader makes them: the picture id in 7 bits while it fits, then in 15.
    private func picture(_ id: Int, keyframe: Bool) -> [[UInt8]] {
        let number: [UInt8] = id < 128 ? [UInt8(id)] : [0x80 | UInt8(id >> 8), UInt8(truncatingIfNeeded: id)]
        let header = keyframe ? VP8Frame.keyframeHeader(width: 640, height: 360) : VP8Frame.deltaHeader
        var first: [UInt8] = [0x90, 0x80], second: [UInt8] = [0x80, 0x80]
        first += number + header
        first += [UInt8](repeating: 1, count: 300 - header.count)
        second += number
        second += [UInt8](repeating: 2, count: 299)
        return [first, second].enumerated().map { index, payload in
            TestPacket(
                ssrc: 0x200, sequence: UInt16(2 * id + index), timestamp: UInt32(id) * 3_000, marker: index == 1,
                payload: payload
            ).bytes
        }
    }

    @Test("Picture ids that a publisher counts on from 7 into 15 bits continue those of another without a jump")
    func bothPictureForms() {
        var (harness, layer) = begun()
        layer.pictureID = 998
        for turn in 1...2 { harness.turn(layer.frame(keyframe: turn == 1), at: at(Double(turn) * 33)) }
        let last = harness.out.count
        #expect(harness.out[last - 1].pictureID == 1_000)
        harness.switchTo(SendSession.track(2), at: at(90))
        harness.levelsSizes = true
        for id in 100..<160 {
            harness.turn(picture(id, keyframe: id == 100), at: at(100 + 33 * Double(id - 100)))
        }
        let packets = Array(harness.out[last...])
        #expect(packets.count == 120)
        #expect(packets.map(\.pictureID) == (1_001...1_060).flatMap { [$0, $0] })
        #expect(packets.allSatisfy { $0.payload[2] & 0x80 != 0 })
        #expect(packets.map { $0.payload.count } == (1...60).flatMap { _ in [304, 303] })
        #expect(packets.map(\.header.paddingLength) == (1...60).flatMap { _ in [0, 1] })
        #expect(packets[1].payload.dropFirst(4).allSatisfy { $0 == 2 })
    }

    @Test("A picture id of 7 bits that is sent as it came stays one")
    func shortPictureStays() {
        let harness = SendHarness(SendSession.track(2), SendSession.subscription())
        let published = (1..<5).flatMap { picture($0, keyframe: $0 == 1) }
        harness.turn(published, at: at(0))
        #expect(harness.out.map(\.payload) == published.map { Array($0[12...]) })
    }

    private static func padding(_ number: UInt32) -> SentPacket {
        SentPacket(sequence: number, content: .padding(.init(timestamp: 0, format: 0)))
    }

    @Test("The ring of sent packets grows with the rate, up to its limit, and keeps its packets")
    func ringGrows() {
        var ring = SentPacketRing(maximum: 512)
        for number in UInt32(1)...5_000 {
            ring.store(Self.padding(number), at: MonotonicTime(milliseconds: Int64(number) * 2))
        }
        #expect(ring.memoryBytes == 512 * MemoryLayout<SentPacket>.stride)
        for number in UInt32(4_489)...5_000 { #expect(ring.place(number)?.pointee.sequence == number) }
        #expect(ring.place(4_400) == nil)
        var slow = SentPacketRing(maximum: 512)
        for number in UInt32(1)...1_000 {
            var sent = Self.padding(number)
            sent.flags = .sent
            slow.store(sent, at: MonotonicTime(milliseconds: Int64(number) * 200))
        }
        #expect(slow.memoryBytes == 64 * MemoryLayout<SentPacket>.stride)
        // A large picture in one turn waits at the pacer: nothing that was not sent yet may go.
        for number in UInt32(1_001)...1_100 {
            slow.store(Self.padding(number), at: MonotonicTime(milliseconds: 201_000))
        }
        for number in UInt32(1_001)...1_100 { #expect(slow.place(number)?.pointee.sequence == number) }
        #expect(MemoryLayout<SentPacket>.stride == 32)
    }

    @Test("Time since a packet's last repeat: right where the milliseconds roll over, unknown before the first")
    func sinceRepeat() {
        var sent = Self.padding(1)
        #expect(sent.sinceRepeat(at: MonotonicTime(milliseconds: 65_530)) == nil)
        sent.lastRepeat = SentPacket.moment(of: MonotonicTime(milliseconds: 65_530))
        #expect(sent.sinceRepeat(at: MonotonicTime(milliseconds: 65_530)) == .zero)
        #expect(sent.sinceRepeat(at: MonotonicTime(milliseconds: 65_560)) == .milliseconds(30))
    }

    @Test("The ring finds a packet by its sequence number, before and after a roll-over")
    func ringByWire() {
        var ring = SentPacketRing(maximum: 512)
        for number in UInt32(0x1_fff0)...0x2_0010 {
            ring.store(Self.padding(number), at: .zero)
        }
        #expect(ring.place(wire: 0xfff5, highest: 0x2_0010)?.pointee.sequence == 0x1_fff5)
        #expect(ring.place(wire: 0x0005, highest: 0x2_0010)?.pointee.sequence == 0x2_0005)
        #expect(ring.place(wire: 0x0011, highest: 0x2_0010) == nil)
    }
}

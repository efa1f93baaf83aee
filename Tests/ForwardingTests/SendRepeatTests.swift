import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Retransmissions for subscribers")
struct SendRepeatTests {
    /// A report on the media stream in which nothing is missing.
    private let report = ReportBlock(
        ssrc: 0xcafe_0001, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0, lastSenderReport: 0,
        delaySinceLastSenderReport: 0)

    private func begun(rtx: Bool) -> (SendHarness, VP8Encoder) {
        let formats = [
            PayloadFormat(codec: .vp8, payloadType: 120, rtxPayloadType: rtx ? 121 : nil, clockRateHz: 90_000)
        ]
        let harness = SendHarness(
            SendSession.track(),
            SendSession.subscription(
                formats: formats, rtx: rtx,
                extensions: [(.videoOrientation, 3), (.transportSequence, 5), (.absoluteSendTime, 6), (.mid, 4)]))
        var layer = VP8Encoder.simulcast()[0]
        layer.orientation = 2
        for turn in 0..<4 { harness.turn(layer.frame(keyframe: turn == 0), at: at(Double(turn) * 33)) }
        return (harness, layer)
    }

    @Test("G3: a retransmission is RTX with the original sequence number and the original's extensions (B6)")
    func asRTX() throws {
        let (harness, _) = begun(rtx: true)
        let original = harness.out[5]
        let repeated = try #require(harness.repeats(of: original.header.sequenceNumber, at: at(200)))
        #expect(repeated.header.ssrc == 0xcafe_0002)
        #expect(repeated.header.payloadType == 121)
        #expect(repeated.header.timestamp == original.header.timestamp)
        #expect(repeated.header.marker == original.header.marker)
        let number = original.header.sequenceNumber
        #expect(Array(repeated.payload.prefix(2)) == [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
        #expect(Array(repeated.payload.dropFirst(2)) == original.payload)
        #expect(repeated.extensions[3] == [2])
        #expect(repeated.extensions[5] != original.extensions[5])
        let second = try #require(harness.repeats(of: harness.out[6].header.sequenceNumber, at: at(200)))
        #expect(second.header.sequenceNumber == repeated.header.sequenceNumber &+ 1)
    }

    @Test(
        "H11: each RTX packet carries the mid, also after a report on the media stream: Firefox drops it otherwise"
    )
    func namesSection() throws {
        let (harness, layer) = begun(rtx: true)
        _ = harness.subscription.pointee.receivedReport(report, at: at(150))
        let original = try #require(harness.out.last)
        #expect(original.extensions[4] != nil)
        var more = layer
        harness.turn(more.frame(keyframe: false), at: at(160))
        let later = try #require(harness.out.last)
        #expect(later.extensions[4] == nil, "the media stream is known")
        let repeated = try #require(harness.repeats(of: later.header.sequenceNumber, at: at(200)))
        #expect(repeated.extensions[4] == original.extensions[4])
        // A packet of padding alone: what was sent last was repeated a moment ago.
        let before = harness.out.count
        while harness.probe(at: at(300)), harness.out.last!.header.payloadLength > 0 {}
        #expect(harness.out[before...].allSatisfy { $0.header.ssrc == 0xcafe_0002 })
        #expect(harness.out[before...].allSatisfy { $0.extensions[4] == original.extensions[4] })
        #expect(harness.out.last!.header.payloadLength == 0, "padding alone")
    }

    @Test("Without RTX a retransmission is byte for byte the same packet")
    func onMediaStream() throws {
        let (harness, _) = begun(rtx: false)
        for original in harness.out {
            let repeated = try #require(harness.repeats(of: original.header.sequenceNumber, at: at(500)))
            #expect(repeated.bytes == original.bytes)
        }
    }

    @Test("G3: a packet is not retransmitted twice within a round trip")
    func throttled() {
        let (harness, _) = begun(rtx: true)
        let number = harness.out[4].header.sequenceNumber
        let roundTrip = TimeSpan.milliseconds(80)
        #expect(harness.repeats(of: number, roundTrip: roundTrip, at: at(200)) != nil)
        #expect(harness.repeats(of: number, roundTrip: roundTrip, at: at(240)) == nil)
        #expect(harness.repeats(of: number, roundTrip: roundTrip, at: at(279)) == nil)
        #expect(harness.repeats(of: number, roundTrip: roundTrip, at: at(281)) != nil)
        #expect(harness.totals.repeats == 2)
        #expect(harness.totals.nacks == 4)
    }

    @Test("A NACK for a number that was never used, or long ago, is ignored")
    func unknown() {
        let (harness, _) = begun(rtx: true)
        let first = harness.out[0].header.sequenceNumber
        #expect(
            harness.subscription.pointee.requestRepeat(first &- 5, of: harness.track, roundTrip: .zero, at: at(1))
                == .dropped(.retransmissionTooOld))
        let last = harness.out.last!.header.sequenceNumber
        #expect(
            harness.subscription.pointee.requestRepeat(last &+ 3, of: harness.track, roundTrip: .zero, at: at(1))
                == .dropped(.retransmissionTooOld))
    }

    @Test(
        "H4: a packet that was sent and is not kept any more asks for a keyframe, once, unless a keyframe was sent since"
    )
    func notKept() {
        var (harness, layer) = begun(rtx: true)
        let early = harness.out.last!.header.sequenceNumber
        func play(from start: Double, keyframe: Bool) {
            for frame in 0..<120 {
                harness.turn(layer.frame(keyframe: keyframe && frame == 0), at: at(start + Double(frame) * 33))
            }
        }
        func asks(_ number: UInt16, _ now: Double) -> Bool {
            _ = harness.repeats(of: number, at: at(now))
            return harness.subscription.pointee.consumeRepair()
        }
        #expect(!asks(early, 150), "a retransmission repairs it")
        play(from: 200, keyframe: false)
        #expect(!asks(harness.out.last!.header.sequenceNumber &+ 3, 4_200), "never sent")
        #expect(!asks(harness.out.last!.header.sequenceNumber, 4_200), "kept")
        #expect(asks(early, 4_200))
        let consumed = harness.subscription.pointee.consumeRepair()
        #expect(!consumed)
        play(from: 4_300, keyframe: true)
        #expect(!asks(early, 8_400), "a decoder begins with the keyframe")
    }

    @Test("A packet that is missing on the uplink, too, is sent once it is repaired")
    func missingHere() {
        var (harness, layer) = begun(rtx: true)
        var packets = layer.frame(keyframe: false)
        packets.remove(at: 1)
        harness.turn(packets, at: at(150))
        let number = harness.out.last!.header.sequenceNumber &- 1
        #expect(
            harness.subscription.pointee.requestRepeat(number, of: harness.track, roundTrip: .zero, at: at(160))
                == .notYetHere)
    }

    @Test("G3: a packet that the publisher repaired is not sent again for NACKs that were under way")
    func repairedLate() {
        var (harness, layer) = begun(rtx: true)
        var packets = layer.frame(keyframe: false)
        let late = packets.remove(at: 1)
        harness.turn(packets, at: at(150))
        harness.turn([late], at: at(180))
        let number = harness.out.last!.header.sequenceNumber
        #expect(number == harness.out[harness.out.count - 2].header.sequenceNumber &- 1)
        #expect(harness.repeats(of: number, at: at(190)) == nil)
        #expect(harness.repeats(of: number, at: at(229)) == nil)
        #expect(harness.repeats(of: number, at: at(231)) != nil)
    }

    @Test("After a switch to another track old numbers are not repaired from the wrong history")
    func otherTrack() {
        let (harness, _) = begun(rtx: true)
        let number = harness.out[3].header.sequenceNumber
        harness.switchTo(SendSession.track(2), at: at(200))
        var other = VP8Encoder.simulcast(2)[0]
        harness.turn(other.frame(keyframe: true), at: at(210))
        #expect(harness.repeats(of: number, at: at(220)) == nil)
        #expect(harness.repeats(of: harness.out.last!.header.sequenceNumber, at: at(220)) != nil)
    }

    @Test("Packets carry the mid until the receiver's first report on the stream; retransmissions of later ones do not")
    func midUntilReport() throws {
        var (harness, layer) = begun(rtx: false)
        #expect(harness.out.allSatisfy { $0.extensions[4] == Array("7".utf8) })
        _ = harness.subscription.pointee.receivedReport(report, at: at(140))
        harness.turn(layer.frame(keyframe: false), at: at(150))
        #expect(harness.out.suffix(3).allSatisfy { $0.extensions[4] == nil })
        // The packet from before is repeated as it was.
        let repeated = try #require(harness.repeats(of: harness.out[0].header.sequenceNumber, at: at(160)))
        #expect(repeated.bytes == harness.out[0].bytes)
    }
}

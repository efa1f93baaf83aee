import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Implausible feedback")
struct SendFeedbackTests {
    /// A feedback about one packet that came, as RTCP.
    private func feedback(_ sequence: UInt16, reference: Int32) -> [UInt8] {
        let number = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
        let time = [16, 8, 0].map { UInt8(truncatingIfNeeded: reference >> Int32($0)) }
        // One packet in a run of small deltas, one step of 250 us.
        return [0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2] + number + [0, 1] + time + [0, 0x20, 1, 1, 0]
    }

    private func receive(_ bytes: [UInt8], _ path: inout SendPath, at now: MonotonicTime) -> Bool {
        guard var compound = RTCPCompound(bytes.span.bytes),
            case .transportFeedback(let feedback)? = compound.next(in: bytes.span.bytes)
        else { return false }
        return path.receive(feedback, in: bytes.span.bytes, at: now)
    }

    @Test(
        "L1: feedback whose reference time wraps every third report is not accepted for longer than a year of its clock"
    )
    func turningClock() {
        var path = SendPath()
        var now = MonotonicTime(milliseconds: 1_000)
        var taken = 0
        // 26 million of these were an overflow; a minute of 100 Mbit/s.
        for round in 0..<600 {
            path.sent(UInt16(round), size: 1_000, as: .media, at: now)
            now = now + .milliseconds(1)
            let reference: Int32 = [(1 << 23) - 1, -1, -2][round % 3]
            if receive(feedback(UInt16(round), reference: reference), &path, at: now) { taken += 1 }
        }
        // After thirty turns each third one, which would be another turn, is refused.
        #expect((425...435).contains(taken))
        let queue = path.condition(at: now).queueDelay
        #expect(queue < .seconds(800 * 86_400) && queue > .seconds(-800 * 86_400))
        // Its clock goes on where it was last believed.
        path.sent(600, size: 1_000, as: .media, at: now)
        let isBelieved = receive(feedback(600, reference: -2), &path, at: now)
        #expect(isBelieved)
    }

    /// A second in which 1 Mbit/s leave, of which this share is reported as lost.
    private func second(of path: inout SendPath, lost: Double, from now: inout MonotonicTime) {
        for _ in 0..<100 {
            path.sent(nil, size: 1_250, as: .media, at: now)
            now = now + .milliseconds(10)
        }
        path.receiverReports(about: 100, lost: 100 * lost, at: now)
    }

    @Test("A receiver that sends receiver reports alone is limited once more than a tenth is lost, and less afterwards")
    func reportsAlone() {
        var path = SendPath()
        var now = MonotonicTime(milliseconds: 1_000)
        // Since when the first report counts is unknown.
        for lost in [0.5, 0.05, 0.1] {
            second(of: &path, lost: lost, from: &now)
            let estimate = path.estimate(at: now)
            #expect(estimate == nil)
        }
        for lost in [0.4, 0.05] {
            second(of: &path, lost: lost, from: &now)
            let estimate = path.estimate(at: now)?.kilobitsPerSecond ?? 0
            #expect((790...810).contains(estimate))
        }
        let condition = path.condition(at: now)
        #expect(condition.isCongested && condition.isMeasured && condition.certainty == .guessed)
        for _ in 0..<10 { second(of: &path, lost: 0, from: &now) }
        let grown = path.estimate(at: now)?.kilobitsPerSecond ?? 0
        #expect((1_600...1_800).contains(grown))
        let later = path.estimate(at: now + .seconds(16))
        #expect(later == nil, "it reports no more")
    }

    @Test("A REMB, and another network path, end the limit that receiver reports have set")
    func reportsSuperseded() {
        for isREMB in [true, false] {
            var path = SendPath()
            var now = MonotonicTime(milliseconds: 1_000)
            for _ in 0..<2 { second(of: &path, lost: 0.5, from: &now) }
            let limited = path.estimate(at: now)
            #expect(limited != nil)
            if isREMB {
                path.receiverEstimate(.kilobitsPerSecond(1_500), at: now)
            } else {
                path.changed(at: now)
            }
            let freed = path.estimate(at: now)
            #expect(freed == nil)
            // These are about packets that were sent on the former path, too.
            second(of: &path, lost: 0.5, from: &now)
            let later = path.estimate(at: now)
            #expect(later == nil)
        }
    }

    @Test("Where there is transport-wide feedback receiver reports limit nothing")
    func reportsBeside() {
        var path = SendPath()
        var now = MonotonicTime(milliseconds: 1_000)
        path.sent(1, size: 1_000, as: .media, at: now)
        let isTaken = receive(feedback(1, reference: 1), &path, at: now)
        #expect(isTaken)
        let before = path.estimate(at: now)
        for _ in 0..<3 { second(of: &path, lost: 0.9, from: &now) }
        let after = path.estimate(at: now)
        #expect(before == after)
    }

    @Test("The losses of a report are of the packets since the last one; of none where these cannot be counted")
    func packetsReported() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        let counts = ([0x1_fff0, 0x2_0010, 0x2_0000, 0x9000_0000, 0x9000_0001] as [UInt32]).map { highest in
            let block = ReportBlock(
                ssrc: 0xcafe_0001, fractionLost: 0, cumulativeLost: 0, highestSequence: highest, jitter: 0,
                lastSenderReport: 0, delaySinceLastSenderReport: 0)
            return harness.subscription.pointee.receivedReport(block, at: at(0)).packets
        }
        #expect(counts == [0, 32, 0, 0, 1])
    }

    @Test("What the publisher's network has lost is no loss of the receiver's; what is lost beyond that is")
    func lossesBefore() {
        let harness = SendHarness(SendSession.track(), SendSession.subscription())
        var layer = VP8Encoder.simulcast()[0]
        func report(_ fractionLost: UInt8, at now: MonotonicTime) -> [Double] {
            let highest = UInt32(harness.out.last?.header.sequenceNumber ?? 0)
            let block = ReportBlock(
                ssrc: 0xcafe_0001, fractionLost: fractionLost, cumulativeLost: 0, highestSequence: highest, jitter: 0,
                lastSenderReport: 0, delaySinceLastSenderReport: 0)
            let found = harness.subscription.pointee.receivedReport(block, at: now)
            return [Double(found.packets), found.lost]
        }
        harness.turn(layer.frame(keyframe: true), at: at(0))
        #expect(report(0, at: at(10)) == [0, 0])
        // One packet of each four does not come from the publisher; of the first ten frames all others arrive, of the next half of all.
        for (begin, fraction, lost) in [(1, 64, 0.0), (11, 128, 10.0)] as [(Int, UInt8, Double)] {
            for number in begin..<(begin + 10) {
                var packets = layer.frame(keyframe: false, packets: 4)
                packets.remove(at: 1)
                harness.turn(packets, at: at(Double(number) * 33))
            }
            #expect(report(fraction, at: at(Double(begin + 10) * 33)) == [30, lost])
        }
    }

    @Test("A reference time that wraps, or steps back a little, is followed")
    func wrappingClock() {
        var clock = FeedbackClock()
        let turn: Int64 = 1 << 32
        #expect(clock.shift(of: (1 << 23) - 2) == 0)
        #expect(clock.shift(of: -(1 << 23)) == turn)
        #expect(clock.shift(of: (1 << 23) - 1) == 0)
        #expect(clock.shift(of: -(1 << 23) + 5) == turn)
        // Twelve days later again: calls last that long, and ten times as long.
        var turns = 1
        for _ in 0..<20 {
            _ = clock.shift(of: -1)
            #expect(clock.shift(of: (1 << 23) - 1) == Int64(turns) * turn)
            turns += 1
            #expect(clock.shift(of: -(1 << 23)) == Int64(turns) * turn)
        }
    }
}

import Primitives
import Testing

@testable import Forwarding

@Suite("Receive: sequence numbers")
struct ReceiveSequenceTests {
    @Test("Numbers are extended across the wrap; gaps, late packets and duplicates are distinguished")
    func verdicts() {
        var tracker = SequenceTracker()
        let base: Int64 = 0x10000 + 65_534
        #expect(tracker.receive(65_534, at: at(0)) == .next(base))
        #expect(tracker.receive(65_535, at: at(1)) == .next(base + 1))
        #expect(tracker.receive(1, at: at(2)) == .ahead(base + 3, missing: base + 2))
        #expect(tracker.receive(0, at: at(3)) == .late(base + 2))
        #expect(tracker.receive(0, at: at(4)) == .duplicate)
        #expect(tracker.receive(1, at: at(4)) == .duplicate)
        #expect(tracker.receive(2, at: at(5)) == .next(base + 4))
        let hasLate = tracker.contains(base + 2), hasNext = tracker.contains(base + 5)
        #expect(hasLate && !hasNext)
    }

    @Test("A jump ahead is accepted at once, and the extended number keeps the sequence number's bits")
    func jumpAhead() {
        var tracker = SequenceTracker()
        _ = tracker.receive(100, at: at(0))
        guard case .restarted(let sequence) = tracker.receive(9_000, at: at(20)) else {
            Issue.record("not seen as a restart")
            return
        }
        #expect(UInt16(truncatingIfNeeded: sequence) == 9_000)
        #expect(tracker.receive(9_001, at: at(40)) == .next(sequence + 1))
    }

    @Test("A jump back needs a second packet, because a very late packet looks the same")
    func jumpBack() {
        var tracker = SequenceTracker()
        _ = tracker.receive(40_000, at: at(0))
        #expect(tracker.receive(30_000, at: at(20)) == .tooOld)
        #expect(tracker.receive(40_001, at: at(21)) == .next(0x10000 + 40_001))
        var other = SequenceTracker()
        _ = other.receive(40_000, at: at(0))
        #expect(other.receive(30_000, at: at(20)) == .tooOld)
        #expect(other.receive(30_001, at: at(40)) == .restarted(0x20000 + 30_001))
    }

    @Test(
        "A6: the first packet after a pause is accepted at once, whatever its number",
        arguments: [5.0, 30, 120], [UInt16(101), 250, 6_100, 40_000, 65_000, 99, 100])
    func afterPause(seconds: Double, number: UInt16) {
        var tracker = SequenceTracker()
        _ = tracker.receive(100, at: at(0))
        switch tracker.receive(number, at: at(seconds * 1000)) {
        case .next(let sequence), .ahead(let sequence, _), .restarted(let sequence):
            #expect(sequence > 0x10000 + 100)
            #expect(UInt16(truncatingIfNeeded: sequence) == number)
        default: Issue.record("packet \(number) was not used after \(seconds) s")
        }
    }

    @Test("Repaired packets fill gaps and never move the numbering")
    func repaired() {
        var tracker = SequenceTracker()
        #expect(tracker.receiveRepaired(5) == .tooOld)
        _ = tracker.receive(10, at: at(0))
        _ = tracker.receive(13, at: at(1))
        #expect(tracker.receiveRepaired(11) == .late(0x10000 + 11))
        #expect(tracker.receiveRepaired(11) == .duplicate)
        #expect(tracker.receiveRepaired(14) == .next(0x10000 + 14))
        #expect(tracker.receiveRepaired(5_000) == .tooOld)
        #expect(tracker.receiveRepaired(60_000) == .tooOld)
    }

    @Test("Long gaps within the limit clear the window's old marks")
    func windowIsCleared() {
        var tracker = SequenceTracker()
        for number in UInt16(0)..<1000 { _ = tracker.receive(number, at: at(Double(number))) }
        _ = tracker.receive(1_900, at: at(1001))
        for number in UInt16(1_000)..<1_900 {
            #expect(tracker.receive(number, at: at(1002)) == .late(0x10000 + Int64(number)))
        }
    }

    @Test("Another source of the same layer restarts the numbering even where its numbers would fit")
    func sourceChange() {
        var tracker = SequenceTracker()
        _ = tracker.receive(100, at: at(0))
        tracker.changeSource()
        #expect(tracker.receive(101, at: at(1)) == .restarted(0x10000 + 101))
        #expect(tracker.receive(102, at: at(2)) == .next(0x10000 + 102))
    }
}

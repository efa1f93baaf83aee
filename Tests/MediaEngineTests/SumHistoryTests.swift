import Forwarding
import Primitives
import Testing

@testable import MediaEngine

/// What a path did not carry together.
@Suite("Sums that a path did not carry")
struct SumHistoryTests {
    /// Rises to a sum of so many kbit/s, and falls, at these seconds.
    private enum Event {
        case rise(Int64, Int64)
        case fall(Int64)
    }

    private static func time(_ seconds: Int64) -> MonotonicTime { MonotonicTime.zero + .seconds(seconds) }

    /// What is known at `seconds` after `events`, on a path of an estimate of 3.8 Mbit/s.
    private static func known(
        after events: [Event], at seconds: Int64, on kilobits: Int64? = 3_800, forgiving moment: Int64? = nil
    ) -> AllocationRules.FailedSum? {
        var history = SumHistory()
        for event in events {
            switch event {
            case .rise(let kilobits, let second):
                _ = history.failedSum(on: .kilobitsPerSecond(3_800), at: time(second))
                history.noteRise(to: .kilobitsPerSecond(kilobits), at: time(second))
            case .fall(let second):
                _ = history.failedSum(on: .kilobitsPerSecond(3_800), at: time(second))
                history.noteFall(at: time(second))
            }
        }
        if let moment { history.forgive(time(moment)) }
        return history.failedSum(on: kilobits.map { .kilobitsPerSecond($0) }, at: time(seconds))
    }

    @Test(
        "H9: a sum that is left within 5 s is barred for 10 s, and needs more headroom until 30 s; 95 % of it is as much"
    )
    func failure() {
        let events: [Event] = [.rise(3_500, 10), .fall(12)]
        let barred = AllocationRules.FailedSum(most: .kilobitsPerSecond(3_325), isBarred: true, attempts: 1)
        let open = AllocationRules.FailedSum(most: .kilobitsPerSecond(3_325), isBarred: false, attempts: 1)
        let moments: [Int64] = [12, 21, 22, 41, 42]
        #expect(moments.map { Self.known(after: events, at: $0) } == [barred, barred, open, open, nil])
    }

    @Test("A fall more than 5 s after the last rise, or without one, bars nothing; one rise fails once")
    func held() {
        #expect(Self.known(after: [.rise(3_500, 10), .fall(16)], at: 16) == nil)
        #expect(Self.known(after: [.fall(12)], at: 12) == nil)
        #expect(Self.known(after: [.rise(3_500, 10), .fall(12), .fall(14)], at: 14)?.attempts == 1)
    }

    @Test("H9: what fails again waits twice as long; another sum, clearly less, begins anew")
    func again() {
        let twice: [Event] = [.rise(3_500, 10), .fall(12), .rise(3_400, 24), .fall(26)]
        #expect(Self.known(after: twice, at: 45)?.isBarred == true)
        #expect(Self.known(after: twice, at: 46)?.isBarred == false)
        let less: [Event] = [.rise(3_500, 10), .fall(12), .rise(3_000, 14), .fall(16)]
        #expect(Self.known(after: less, at: 16)?.attempts == 1)
        #expect(Self.known(after: less, at: 16)?.most == .kilobitsPerSecond(2_850))
    }

    @Test("A rise to as much that holds for 5 s ends it; one to less does not")
    func success() {
        let failure: [Event] = [.rise(3_500, 10), .fall(12)]
        #expect(Self.known(after: failure + [.rise(3_500, 23)], at: 28) != nil)
        #expect(Self.known(after: failure + [.rise(3_500, 23)], at: 29) == nil)
        #expect(Self.known(after: failure + [.rise(3_000, 23)], at: 29) != nil)
    }

    @Test(
        "A path that carries half as much again, one without a limit, and a fall for a stall that ended at once bar nothing"
    )
    func otherPath() {
        let events: [Event] = [.rise(3_500, 10), .fall(12)]
        #expect(Self.known(after: events, at: 13, on: 5_200) != nil)
        #expect(Self.known(after: events, at: 13, on: 5_250) == nil)
        #expect(Self.known(after: events, at: 13, on: nil) == nil)
        #expect(Self.known(after: events, at: 13, forgiving: 12) == nil)
        #expect(Self.known(after: events, at: 13, forgiving: 11) != nil)
    }
}

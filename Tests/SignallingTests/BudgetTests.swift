import EdgeSupport
import Primitives
import Testing

@testable import Signalling

@Suite("The budget of one socket")
struct BudgetTests {
    @Test("Small requests: 400 at once, then 200 a second")
    func small() {
        var budget = RequestBudget()
        #expect((0..<1_000).count { _ in budget.take(100, at: .zero) == .go } == 400)
        #expect((0..<1_000).count { _ in budget.take(100, at: MonotonicTime(milliseconds: 500)) == .go } == 100)
    }

    @Test("A request that stands for many counts as many, and is refused as a whole")
    func requestsWithin() {
        var budget = RequestBudget()
        #expect(budget.take(0, at: .zero) == .go)
        #expect(budget.takeMore(0, at: .zero) == .go)
        #expect(budget.takeMore(390, at: .zero) == .go)
        #expect(budget.takeMore(10, at: .zero) == .refuse)
        #expect((0..<1_000).count { _ in budget.take(0, at: .zero) == .go } == 9)
        // Who goes on is closed.
        #expect(budget.takeMore(1, at: .zero) == .close)
    }

    @Test("L1: a long reply counts against the requests that follow it, also where it is longer than all of them")
    func replies() {
        var budget = RequestBudget()
        #expect(budget.take(20, at: .zero) == .go)
        budget.addReply(4_000, at: .zero)
        #expect((0..<99).count { _ in budget.take(20, at: .zero) == .go } == 99, "a short one costs nothing")
        budget.addReply(500 * 4_096, at: .zero)
        #expect(budget.take(20, at: MonotonicTime(milliseconds: 900)) == .refuse)
        #expect(budget.take(20, at: MonotonicTime(milliseconds: 1_005)) == .go)
    }

    @Test("L1: descriptions of 256 KiB come through by the handful")
    func large() {
        var budget = RequestBudget()
        #expect((0..<100).count { _ in budget.take(256 << 10, at: .zero) == .go } == 6)
        #expect(budget.take(10, at: .zero) == .go, "small ones still do")
    }

    @Test("Who goes on at five times the rate is told for a second, and then closed")
    func patience() {
        var budget = RequestBudget()
        func verdicts(_ milliseconds: Range<Int64>) -> Set<RequestBudget.Verdict> {
            Set(milliseconds.map { budget.take(100, at: MonotonicTime(milliseconds: $0)) })
        }
        #expect(verdicts(0..<1_000) == [.go, .refuse])
        #expect(verdicts(1_000..<2_000).contains(.close))
    }

    @Test("Who asks for a fifth too much goes on being told")
    func slightlyTooMuch() {
        var budget = RequestBudget()
        let verdicts = (0..<24_000 as Range<Int64>).map {
            budget.take(100, at: MonotonicTime(milliseconds: $0 * 1_000 / 240))
        }
        #expect(Set(verdicts) == [.go, .refuse])
    }
}

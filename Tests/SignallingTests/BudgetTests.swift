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

    @Test("L1: descriptions of 256 KiB come through by the handful")
    func large() {
        var budget = RequestBudget()
        #expect((0..<100).count { _ in budget.take(256 << 10, at: .zero) == .go } == 6)
        #expect(budget.take(10, at: .zero) == .go, "small ones still do")
    }
}

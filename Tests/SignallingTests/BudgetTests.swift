import EdgeSupport
import HTTPServing
import Primitives
import Rooms
import SDP
import Testing

@testable import Signalling

@Suite("The budget of one socket")
struct BudgetTests {
    @Test("Small requests: 400 at once, then 200 a second")
    func small() {
        var budget = RequestBudget()
        #expect((0..<1_000).count { _ in budget.spend(100, at: .zero) == .go } == 400)
        #expect((0..<1_000).count { _ in budget.spend(100, at: MonotonicTime(milliseconds: 500)) == .go } == 100)
    }

    @Test("A request that stands for many counts as many, and is refused as a whole")
    func requestsWithin() {
        var budget = RequestBudget()
        #expect(budget.spend(0, at: .zero) == .go)
        #expect(budget.spendMore(0, at: .zero) == .go)
        #expect(budget.spendMore(390, at: .zero) == .go)
        #expect(budget.spendMore(10, at: .zero) == .refuse)
        #expect((0..<1_000).count { _ in budget.spend(0, at: .zero) == .go } == 9)
        // Who goes on is closed.
        #expect(budget.spendMore(1, at: .zero) == .close)
    }

    @Test("L1: long replies are as bounded as requests of their length, and keep nobody from requests of other kinds")
    func replies() {
        var budget = RequestBudget()
        budget.addReply(4_000, at: .zero)
        #expect(budget.allowsLongReply(at: .zero) == true, "a short one costs nothing")
        // A room of 5,000: three seconds' worth.
        budget.addReply(600 * 4_096, at: .zero)
        #expect(budget.allowsLongReply(at: MonotonicTime(milliseconds: 995)) == false)
        #expect((0..<400).count { _ in budget.spend(20, at: .zero) == .go } == 400)
        #expect(budget.allowsLongReply(at: MonotonicTime(milliseconds: 1_000)) == true)
    }

    @Test("L1: an answer of the longest description, with the most lines, is not too large a message")
    func longestDescription() {
        let limits = SDPLimits()
        // JSON writes the ends of its lines as four characters.
        let description = limits.maximumBytes + 2 * limits.maximumLines
        let others = #"{"type":"answer","id":9007199254740991,"connection":"","offer":9007199254740991,"sdp":""}"#
        let names = 6 * RoomLimits().connectionIDBytes
        #expect(description + others.utf8.count + names <= WebSocketLimits().maximumMessageBytes)
        #expect(WebSocketLimits().maximumMessageBytes <= WebSocketLimits().maximumIncomingBytes)
        var budget = RequestBudget()
        let verdict = budget.spend(WebSocketLimits().maximumMessageBytes, at: .zero)
        #expect(verdict == .go)
    }

    @Test("L1: descriptions of 256 KiB come through by the handful")
    func large() {
        var budget = RequestBudget()
        #expect((0..<100).count { _ in budget.spend(256 << 10, at: .zero) == .go } == 6)
        #expect(budget.spend(10, at: .zero) == .go, "small ones still do")
    }

    @Test("Who goes on at five times the rate is refused for a second, and then closed")
    func patience() {
        var budget = RequestBudget()
        func verdicts(_ milliseconds: Range<Int64>) -> Set<RequestBudget.Verdict> {
            Set(milliseconds.map { budget.spend(100, at: MonotonicTime(milliseconds: $0)) })
        }
        #expect(verdicts(0..<1_000) == [.go, .refuse])
        #expect(verdicts(1_000..<2_000).contains(.close))
    }

    @Test("Who asks for a fifth too much goes on being refused in part")
    func slightlyTooMuch() {
        var budget = RequestBudget()
        let verdicts = (0..<24_000 as Range<Int64>).map {
            budget.spend(100, at: MonotonicTime(milliseconds: $0 * 1_000 / 240))
        }
        #expect(Set(verdicts) == [.go, .refuse])
    }
}

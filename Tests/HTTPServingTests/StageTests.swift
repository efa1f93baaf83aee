import Primitives
import Testing

@testable import HTTPServing

@Suite("Stages, slots, budgets and deadlines")
struct StageTests {
    @Test("A stage knows its oldest, all in all and of an address, whoever has come and gone since")
    func stage() {
        var stage = Stage(limit: 3, limitPerAddress: 2)
        for (id, address) in [(1, 10), (2, 20), (3, 10)] as [(UInt64, UInt64)] { stage.enter(id, address) }
        #expect(stage.isFull && stage.isFull(for: 10) && !stage.isFull(for: 20))
        #expect(stage.oldest() == 1 && stage.oldest(of: 10) == 1 && stage.oldest(of: 20) == 2)
        stage.enter(1, 10)
        #expect(stage.oldest() == 2 && stage.oldest(of: 10) == 3 && stage.count == 3)
        stage.leave(3)
        stage.leave(3)
        #expect(stage.oldest(of: 10) == 1 && !stage.isFull(for: 10))
        for id in 100..<10_000 as Range<UInt64> {
            stage.enter(id, 30)
            stage.leave(id)
        }
        #expect(stage.oldest() == 2 && stage.oldest(of: 30) == nil && stage.count == 2)
        stage.leave(2)
        stage.leave(1)
        #expect(stage.oldest() == nil && stage.count == 0)
    }

    @Test("Slots go round: an address beyond its share waits for its own, and nobody waits for it")
    func slots() {
        var slots = HandlerSlots(limit: 2, limitPerAddress: 1)
        #expect(slots.bound(for: 10) == nil)
        slots.begin(1, of: 10)
        #expect(slots.bound(for: 10) == .addressRequests && slots.bound(for: 20) == nil)
        slots.wait(100, of: 10, for: .addressRequests)
        slots.wait(101, of: 10, for: .addressRequests)
        #expect(slots.next() == nil, "its own slot is taken")
        slots.begin(2, of: 20)
        #expect(slots.bound(for: 30) == .requests)
        slots.wait(102, of: 30, for: .requests)
        slots.wait(103, of: 20, for: .addressRequests)
        slots.giveUp(103)
        slots.end(2)
        #expect(slots.next() == 102)
        slots.begin(3, of: 30)
        slots.end(3)
        slots.end(3)
        #expect(slots.next() == nil, "those of 10 still wait for the first")
        slots.end(1)
        #expect(slots.next() == 100)
        slots.begin(4, of: 10)
        #expect(slots.next() == nil)
        slots.end(4)
        #expect(slots.next() == 101)
    }

    @Test("A backlog holds the bytes of those that wait")
    func backlog() {
        var backlog = MessageBacklog(limit: 100)
        let added: [(size: Int, waiting: Int, fits: Bool)] = [
            (60, 1, true), (40, 2, true), (1, 3, false),
            // Two have been handled, then none.
            (59, 2, true), (41, 3, false),
            // One is handed over at once.
            (1_000, 0, true), (100, 1, true), (1, 2, false),
        ]
        for (size, waiting, fits) in added {
            let isTaken = backlog.add(size, waiting: waiting)
            #expect(isTaken == fits, "\(size) behind \(waiting - 1)")
        }
    }

    @Test("Deadlines come due in their order")
    func deadlines() {
        var deadlines = Deadlines()
        for index in 0..<100 {
            deadlines.add(MonotonicTime(milliseconds: Int64((index * 37) % 100)), UInt64((index * 37) % 100))
        }
        #expect(deadlines.next == .zero)
        var due: [UInt64] = []
        while let next = deadlines.removeDue(at: MonotonicTime(milliseconds: 49)) { due.append(next.owner) }
        #expect(due == Array(0..<50))
        #expect(deadlines.next == MonotonicTime(milliseconds: 50))
    }

    @Test("A timeout that is put off all the time comes when it should, and the heap holds little of it")
    func timeouts() {
        var deadlines = Deadlines()
        var timeout = Timeout()
        var now = MonotonicTime(milliseconds: 0)
        var expired: [MonotonicTime] = []
        var most = 0
        // An hour of a client with a request in each second: 30 s for its handler, 75 s until the next.
        for second in 0..<3_600 {
            now = MonotonicTime(milliseconds: Int64(second) * 1_000)
            while let (moment, owner) = deadlines.removeDue(at: now) {
                if timeout.isOver(at: moment, now: now, of: owner, in: &deadlines) { expired.append(now) }
            }
            timeout.set(now + .seconds(30), of: 1, in: &deadlines)
            timeout.set(now + .seconds(75), of: 1, in: &deadlines)
            most = max(most, deadlines.count)
        }
        #expect(expired.isEmpty)
        #expect(most <= 5, "\(most)")
        while let (moment, owner) = deadlines.removeDue(at: deadlines.next) {
            if timeout.isOver(at: moment, now: moment, of: owner, in: &deadlines) { expired.append(moment) }
        }
        #expect(expired == [now + .seconds(75)])
        #expect(deadlines.count == 0)
    }

    @Test("A budget of frames is refilled with time and never beyond its burst")
    func budget() {
        var budget = FrameBudget(perSecond: 10, burst: 3)
        let start = MonotonicTime(milliseconds: 5_000)
        func spend(_ count: Int, _ milliseconds: Int64) -> Int {
            (0..<count).count { _ in budget.spend(at: start + .milliseconds(milliseconds)) }
        }
        #expect(spend(5, 0) == 3)
        #expect(spend(5, 99) == 0)
        #expect(spend(5, 100) == 1)
        #expect(spend(5, 350) == 2)
        #expect(spend(10, 60_000) == 3)
    }
}

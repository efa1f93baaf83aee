import Primitives
import Testing

@testable import HTTPServing

@Suite("Stages, slots, backlogs and deadlines")
struct StageTests {
    @Test("A stage knows its oldest entry, overall and per address, after any sequence of arrivals and departures")
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

    @Test(
        "Addresses take turns for slots: an address with one request waits for one of each other, and none waits for a share that is used up"
    )
    func slots() {
        var slots = HandlerSlots(limit: 2, limitPerAddress: 1)
        var work: UInt64 = 0
        func wait(_ connection: UInt64, _ address: UInt64) {
            let fits = slots.wait(connection, of: address, size: 10)
            #expect(fits)
        }
        func begin(_ address: UInt64) -> UInt64 {
            work += 1
            slots.begin(work, of: address)
            return work
        }
        let first = begin(10)
        #expect(slots.bound(for: 10) == .addressRequests && slots.bound(for: 20) == nil)
        let second = begin(20)
        #expect(slots.bound(for: 30) == .requests)
        for connection in 100..<110 as Range<UInt64> { wait(connection, 10) }
        for connection in 200..<210 as Range<UInt64> { wait(connection, 20) }
        wait(300, 30)
        wait(301, 30)
        slots.giveUp(300)
        #expect(slots.next() == nil, "no slot is free")
        slots.end(second)
        slots.end(second)
        #expect(slots.next() == 200, "10 has its share")
        let third = begin(20)
        slots.end(third)
        #expect(slots.next() == 301, "20 was served last")
        let fourth = begin(30)
        slots.end(first)
        #expect(slots.next() == 100)
        let fifth = begin(10)
        slots.end(fourth)
        #expect(slots.next() == 201)
        slots.end(fifth)
        #expect(slots.next() == 101)
    }

    @Test("The memory of waiting requests is bounded")
    func waitingBytes() {
        var slots = HandlerSlots(limit: 1, limitPerAddress: 1)
        slots.begin(1, of: 10)
        let large = HandlerSlots.waitingBytes / 2
        let fits = [(1, large), (2, large), (3, 1)].map { slots.wait($0.0, of: 10, size: $0.1) }
        #expect(fits == [true, true, false])
        slots.giveUp(2)
        slots.giveUp(2)
        let again = [(4, large), (5, 1)].map { slots.wait($0.0, of: 10, size: $0.1) }
        #expect(again == [true, false])
    }

    @Test("Unfinished bodies are displaced oldest first, those of unauthenticated clients only by each other")
    func unfinishedBodies() {
        var configuration = HTTPServerConfiguration(host: "", port: 0)
        configuration.maximumBodies = 3
        configuration.maximumBodiesPerAddress = 2
        configuration.maximumUnknownBodies = 2
        configuration.maximumUnknownBodiesPerAddress = 1
        var bodies = UnfinishedBodies(configuration)
        func enter(_ id: UInt64, _ address: UInt64, _ isKnown: Bool) -> [UInt64] {
            bodies.enter(id, of: address, isKnown: isKnown).map(\.id)
        }
        #expect([enter(1, 10, true), enter(2, 10, true), enter(3, 20, true)] == [[], [], []])
        #expect(
            [enter(4, 10, false), enter(5, 20, false), enter(6, 20, false), enter(7, 30, false)] == [[], [], [5], [4]])
        #expect(enter(8, 10, true) == [1], "its own oldest")
        #expect(enter(9, 30, true) == [2], "the oldest of all")
        #expect((1...9).filter(bodies.contains) == [3, 6, 7, 8, 9])
        bodies.leave(3)
        #expect(enter(10, 40, true) == [])
    }

    @Test("A backlog counts the bytes of those that wait")
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

    @Test("Deadlines expire in order")
    func deadlines() {
        var deadlines = DeadlineQueue()
        for index in 0..<100 {
            deadlines.add(MonotonicTime(milliseconds: Int64((index * 37) % 100)), UInt64((index * 37) % 100))
        }
        #expect(deadlines.next == .zero)
        var due: [UInt64] = []
        while let next = deadlines.removeDue(at: MonotonicTime(milliseconds: 49)) { due.append(next.owner) }
        #expect(due == Array(0..<50))
        #expect(deadlines.next == MonotonicTime(milliseconds: 50))
    }

    @Test("A timeout that is postponed again and again fires at its time, and takes little space in the heap")
    func timeouts() {
        var deadlines = DeadlineQueue()
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
}

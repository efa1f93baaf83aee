import Primitives
import Synchronization
import Testing

@testable import NetworkIO

@Suite("Loops: waiting, waking, threads")
struct LoopTests {
    /// `#expect` cannot take a call on a value that may not be copied.
    private func expect(_ ready: Int, _ expected: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ready == expected, sourceLocation: sourceLocation)
    }

    @Test("A mailbox wakes its owner once, keeps the order, and refuses elements when closed")
    func mailbox() throws {
        let wake = try WakeSignal()
        let mailbox = Mailbox<Int>(wake: wake)
        let poller = try Poller()
        try poller.add(wake.descriptor)
        expect(poller.wait(until: .zero, now: .zero), 0)
        for number in 0..<3 { #expect(mailbox.post(number)) }
        let ready = poller.wait(until: .distantFuture, now: .zero)
        let isReady = poller.isReady(wake.descriptor, of: ready)
        #expect(isReady)
        wake.clear()
        expect(poller.wait(until: .zero, now: .zero), 0)
        var taken: [Int] = []
        mailbox.drain(into: &taken)
        #expect(taken == [0, 1, 2])
        #expect(mailbox.post(3))
        expect(poller.wait(until: .zero, now: .zero), 1)
        mailbox.close()
        #expect(!mailbox.post(4))
        taken = []
        mailbox.drain(into: &taken)
        #expect(taken == [3])
    }

    @Test("Elements that are put back come first again, and wake the owner")
    func putBack() throws {
        let wake = try WakeSignal()
        let mailbox = Mailbox<Int>(wake: wake)
        let poller = try Poller()
        try poller.add(wake.descriptor)
        for number in 0..<4 { #expect(mailbox.post(number)) }
        wake.clear()
        var taken: [Int] = []
        mailbox.drain(into: &taken)
        #expect(mailbox.post(4))
        wake.clear()
        mailbox.putBack(&taken, from: 2)
        #expect(taken.isEmpty)
        expect(poller.wait(until: .zero, now: .zero), 1)
        mailbox.drain(into: &taken)
        #expect(taken == [2, 3, 4])
    }

    @Test("A sleeping loop wakes at its deadline, not before")
    func deadline() throws {
        let poller = try Poller()
        let start = MonotonicClock.now()
        expect(poller.wait(until: start + .microseconds(300), now: start), 0)
        #expect(MonotonicClock.now() - start >= .microseconds(300))
        expect(poller.wait(until: start, now: MonotonicClock.now()), 0)
    }

    @Test("All elements posted by other threads arrive")
    func manyPosters() throws {
        let wake = try WakeSignal()
        let mailbox = Mailbox<Int>(wake: wake)
        let poller = try Poller()
        try poller.add(wake.descriptor)
        let threads = try (0..<4).map { thread in
            try LoopThread(name: "post-\(thread)", cpu: nil) {
                for number in 0..<1_000 { _ = mailbox.post(thread * 1_000 + number) }
            }
        }
        var all: [Int] = []
        var taken: [Int] = []
        while all.count < 4_000 {
            _ = poller.wait(until: .distantFuture, now: .zero)
            wake.clear()
            mailbox.drain(into: &taken)
            all += taken
            taken.removeAll(keepingCapacity: true)
        }
        for thread in threads { thread.join() }
        #expect(all.sorted() == Array(0..<4_000))
        for thread in 0..<4 {
            let own = all.filter { $0 / 1_000 == thread }
            #expect(own == own.sorted(), "each poster's order is kept")
        }
    }

    @Test("A thread runs its function once, beside its caller")
    func thread() throws {
        let cpu = try #require(Processors.usable.last)
        let seen = Mutex<(thread: UInt, runs: Int)>((0, 0))
        let thread = try LoopThread(name: "a-name-of-many-bytes", cpu: cpu) {
            seen.withLock { $0 = (currentThread(), $0.runs + 1) }
        }
        thread.join()
        let (number, runs) = seen.withLock { $0 }
        #expect(number != 0 && number != currentThread())
        #expect(runs == 1)
    }

    @Test("The machine's addresses are routable")
    func interfaces() {
        for address in NetworkInterfaces.addresses() {
            #expect(!address.isLoopback)
            #expect(address.port == 0)
        }
    }
}

import Primitives
import Simulation
import Testing

@Suite("Virtual network")
struct NetworkTests {
    @Test("A perfect wire delivers at once and in order")
    func perfectWire() {
        var link = VirtualLink(LinkModel())
        var random = RandomSource(seed: 1)
        let now = MonotonicTime(milliseconds: 5)
        #expect(link.arrivals(of: 1_200, at: now, random: &random) == [now])
    }

    @Test("Loss occurs at the configured rate, alone or in bursts", arguments: [(0.05, 1.0), (0.05, 4.0), (0.2, 8.0)])
    func loss(rate: Double, burst: Double) {
        var model = LinkModel(delay: .milliseconds(10), loss: rate)
        model.meanLossBurst = burst
        var link = VirtualLink(model)
        var random = RandomSource(seed: 7)
        var bursts = 0
        var wasLost = false
        for index in 0..<200_000 {
            let lost = link.arrivals(of: 100, at: MonotonicTime(milliseconds: Int64(index)), random: &random).isEmpty
            if lost, !wasLost { bursts += 1 }
            wasLost = lost
        }
        let measured = Double(link.lost) / 200_000
        #expect(abs(measured - rate) < 0.1 * rate)
        let meanBurst = Double(link.lost) / Double(bursts)
        let expectedBurst = burst > 1 ? burst : 1 / (1 - rate)
        #expect(abs(meanBurst - expectedBurst) < 0.1 * expectedBurst)
    }

    @Test("Jitter keeps the order, or lets datagrams overtake others", arguments: [true, false])
    func jitter(keepsOrder: Bool) {
        var model = LinkModel(delay: .milliseconds(10))
        model.jitter = .milliseconds(60)
        model.keepsOrder = keepsOrder
        var link = VirtualLink(model)
        var random = RandomSource(seed: 4)
        let times = (0..<1_000).map { Int64($0) * 10 }
        let arrivals = times.flatMap { link.arrivals(of: 100, at: MonotonicTime(milliseconds: $0), random: &random) }
        let delays = zip(times, arrivals).map { ($1 - MonotonicTime(milliseconds: $0)).seconds * 1e3 }
        #expect(delays.allSatisfy { (10...70).contains($0) })
        #expect(zip(arrivals, arrivals.dropFirst()).contains { $0 > $1 } == !keepsOrder)
    }

    @Test("A bottleneck spaces datagrams by their size and drops what would wait too long")
    func bottleneck() {
        var link = VirtualLink(LinkModel(delay: .milliseconds(1), rate: .kilobitsPerSecond(1_000)))
        var random = RandomSource(seed: 3)
        // 1,222 bytes and 28 of headers are 10,000 bits: 10 ms each at 1 Mbit/s.
        let arrivals = (0..<40).flatMap { _ in link.arrivals(of: 1_222, at: .zero, random: &random) }
        #expect(Array(arrivals.prefix(3)) == [11, 21, 31].map { MonotonicTime(milliseconds: $0) })
        #expect(arrivals.count == 31, "300 ms of queue and the one being sent")
        #expect(link.overflowed == 9)
    }

    @Test("A policer passes a burst at once and then its rate, and queues nothing")
    func policer() {
        var model = LinkModel(delay: .milliseconds(1))
        model.policer = Policer(rate: .kilobitsPerSecond(1_000), burst: 12_500)
        var link = VirtualLink(model)
        var random = RandomSource(seed: 3)
        // 10,000 bits each: ten are the burst, and one passes each 10 ms.
        let burst = (0..<40).flatMap { _ in link.arrivals(of: 1_222, at: .zero, random: &random) }
        #expect(burst == Array(repeating: MonotonicTime(milliseconds: 1), count: 10))
        let after = (1...100).flatMap {
            link.arrivals(of: 1_222, at: MonotonicTime(milliseconds: Int64($0) * 5), random: &random)
        }
        #expect(after.count == 50)
        #expect(link.overflowed == 80)
    }

    @Test("Jitter alone keeps the order")
    func jitterKeepsOrder() {
        var model = LinkModel(delay: .milliseconds(20))
        model.jitter = .milliseconds(30)
        var link = VirtualLink(model)
        var random = RandomSource(seed: 11)
        let arrivals = (0..<500).flatMap {
            link.arrivals(of: 100, at: MonotonicTime(milliseconds: Int64($0)), random: &random)
        }
        #expect(arrivals == arrivals.sorted())
    }

    @Test("Events occur by time, and in the order of scheduling at the same time")
    func queueOrder() {
        var queue = EventQueue<Int>()
        for (event, time) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 30)] {
            queue.plan(event, at: MonotonicTime(milliseconds: Int64(time)))
        }
        var order: [Int] = []
        while let next = queue.next(until: MonotonicTime(milliseconds: 25)) { order.append(next.event) }
        #expect(order == [2, 4, 3])
        #expect(queue.nextTime == MonotonicTime(milliseconds: 30))
    }

    @Test("The same seed gives the same numbers, another seed others")
    func seeds() {
        func numbers(_ seed: UInt64) -> [UInt64] {
            var random = RandomSource(seed: seed)
            return (0..<8).map { _ in random.next() }
        }
        #expect(numbers(5) == numbers(5))
        #expect(numbers(5) != numbers(6))
    }
}

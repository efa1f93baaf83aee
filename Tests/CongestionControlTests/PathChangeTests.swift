import CongestionControl
import Primitives
import Simulation
import Testing

/// Paths that become other ones.
@Suite("Change of the path")
struct PathChangeTests {
    /// Sends the largest layer that fits, and nothing where none does; after a fall it waits five seconds.
    private final class Router {
        static let layers = [150e3, 450e3, 1_500e3]
        private(set) var changes: [MonotonicTime] = []
        private var rate = 0.0
        private var fell = MonotonicTime.zero

        func choose(_ estimate: Double, at now: MonotonicTime) -> Double {
            let wanted = Self.layers.last { $0 <= estimate * ($0 > rate ? 0.92 : 0.98) } ?? 0
            guard wanted != rate, wanted < rate || rate == 0 || now - fell >= .seconds(5) else { return rate }
            if wanted < rate { fell = now }
            rate = wanted
            changes.append(now)
            return rate
        }

        func demand(_ estimate: Double) -> (next: Double?, wanted: Double) {
            (Self.layers.first { $0 > rate }.map { $0 * 1.1 }, 1_600e3)
        }
    }

    private func makeBench(
        _ router: Router = Router(), rate: Double?, delay: TimeSpan = .milliseconds(25)
    ) -> PathBench {
        var bench = PathBench(rate: rate, delay: delay) { router.choose($0, at: $1) }
        bench.demand = { router.demand($0) }
        return bench
    }

    @Test("H4: a delay that is 80 ms longer after an outage of 1.5 s is a new path, not a queue")
    func farther() {
        var bench = makeBench(rate: 2_000e3, delay: .milliseconds(10))
        bench.run(seconds: 15)
        bench.link.model.loss = 1
        bench.run(seconds: 1.5)
        bench.link.model.loss = 0
        bench.link.model.delay = .milliseconds(90)
        bench.run(seconds: 20)
        let back = bench.time(after: 16.5, untilAtLeast: 1_600e3)
        print("farther: back after \(back ?? -1) s")
        #expect((back ?? .infinity) <= 3)
    }

    @Test("H4: a delay that grows by 80 ms at once, with the path reported as changed")
    func handedOver() {
        var bench = makeBench(rate: 2_000e3, delay: .milliseconds(10))
        bench.run(seconds: 15)
        bench.link.model.delay = .milliseconds(90)
        bench.estimator.pathChanged(at: bench.now)
        bench.run(seconds: 5)
        let least = bench.estimates(from: 15).min() ?? 0
        print("handed over: least \(least)")
        #expect(least >= 1_500e3)
        #expect(bench.estimator.queueDelay < .milliseconds(40))
    }

    @Test(
        "H4: a path that changes while no feedback comes: the shorter delay of the former one makes no queue of the new one's"
    )
    func handedOverInSilence() {
        var estimator = BandwidthEstimator()
        var phase = BandwidthEstimator.Phase.untested
        var now = MonotonicTime(milliseconds: 1_000)
        var waiting: [(sequence: UInt16, arrival: Int64)] = []
        // A packet each 20 ms, feedback each 100 ms but from 9 to 11.3 s: the viewer's own packets are lost until, from 11 s on, it uses another path.
        for step in 0..<650 {
            let isNew = step >= 550
            now = now + .milliseconds(20)
            estimator.advance(to: now)
            if step == 550 {
                phase = estimator.phase
                estimator.pathChanged(at: now)
            }
            estimator.sent(UInt16(step), size: 1_000, at: now)
            waiting.append((UInt16(step), now.microseconds + (isNew ? 90_000 : 10_000)))
            guard step % 5 == 4, !(450..<565).contains(step) else { continue }
            let arrived = waiting.filter { $0.arrival <= now.microseconds }
            waiting.removeFirst(arrived.count)
            estimator.beginFeedback(at: now)
            for packet in arrived { estimator.report(packet.sequence, arrival: packet.arrival) }
            estimator.endFeedback(at: now)
        }
        #expect(phase == .silent)
        #expect(estimator.phase == .measuring)
        #expect(estimator.queueDelay < .milliseconds(20))
    }
}

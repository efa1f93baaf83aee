import CongestionControl
import Primitives
import Simulation
import Testing

/// TCP: nothing is lost on the path, and queues grow on this side of it.
@Suite("Paths over TCP")
struct ReliablePathTests {
    private func estimate(reliable: Bool) -> (estimate: Double, loss: Double) {
        var bench = PathBench(rate: nil, delay: .milliseconds(25)) { _, _ in 1_000e3 }
        bench.estimator.isReliable = reliable
        bench.run(seconds: 5)
        bench.link.model.loss = 0.4
        bench.run(seconds: 10)
        return (Double(bench.estimator.estimate(at: bench.now).bitsPerSecond), bench.estimator.lossRate)
    }

    @Test("F9: packets that are reported missing lower the estimate over UDP, and say nothing over TCP")
    func missing() {
        let tcp = estimate(reliable: true), udp = estimate(reliable: false)
        #expect(tcp.loss == 0 && udp.loss > 0.2)
        #expect(tcp.estimate > 1_000e3 && udp.estimate < tcp.estimate)
    }

    private func report(_ arrivals: [Int64?], to estimator: inout BandwidthEstimator, at now: MonotonicTime) {
        estimator.beginFeedback(at: now)
        for (number, arrival) in arrivals.enumerated() { estimator.report(UInt16(number), arrival: arrival) }
        estimator.endFeedback(at: now)
    }

    @Test("What is reported missing over TCP and arrives over UDP takes back no loss, for none was counted")
    func missingBeforeChange() {
        var estimator = BandwidthEstimator()
        estimator.isReliable = true
        for number in 0..<3 as Range<UInt16> { estimator.sent(number, size: 1_000, at: .zero + .milliseconds(1)) }
        report([50_000, nil, 52_000], to: &estimator, at: .zero + .milliseconds(100))
        let before = estimator.lost
        estimator.isReliable = false
        estimator.pathChanged(at: .zero + .milliseconds(150))
        report([50_000, 180_000, 52_000], to: &estimator, at: .zero + .milliseconds(200))
        let after = estimator.lost
        let received = estimator.received
        #expect(before == 0 && after == 0 && received == 3)
    }

    @Test("F9: a backlog on this side lowers the estimate below what is delivered, and counts as congestion")
    func backlog() {
        var bench = PathBench(rate: nil, delay: .milliseconds(25)) { _, _ in 1_000e3 }
        bench.estimator.isReliable = true
        bench.run(seconds: 5)
        let before = bench.estimator.isCongested(at: bench.now)
        #expect(!before)
        bench.estimator.backlogged(at: bench.now)
        let after = bench.estimator.isCongested(at: bench.now)
        #expect(after)
        #expect(Double(bench.estimator.estimate(at: bench.now).bitsPerSecond) < 1_000e3)
    }
}

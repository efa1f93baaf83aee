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

import MediaControl
import Primitives
import Simulation
import Testing

/// Links as they are outside: made from seeds, so that a run can be repeated.
@Suite("Scenario")
struct TraceTests {
    @Test("An LTE-like link wanders between 0.4 and 6 Mbit/s, around 1.8", arguments: [1, 2])
    func mobile(seed: UInt64) throws {
        let scenario = try Scenario("LTE \(seed)", seed: 30 + seed, link: Scenario.link(2_500, delay: 35))
        scenario.viewer.downlink.model.jitter = .milliseconds(8)
        scenario.show(.simulcast())
        var random = RandomSource(seed: seed)
        var rate = 2_500e3
        for _ in 0..<90 {
            // Each half second up to 30 % more or less, and a quarter of the way back to the middle, as far as rates go by ratios.
            rate *= (1_800e3 / rate).squareRoot().squareRoot() * Double.random(in: 0.7...1.43, using: &random)
            rate = min(max(rate, 400e3), 6_000e3)
            scenario.viewer.downlink.model.rate = .bitsPerSecond(Int64(rate))
            scenario.run(0.5)
        }
        scenario.judge(Thresholds.mobile, from: 10, wanted: ScenarioTests.all)
    }

    @Test(
        "A Wi-Fi-like link: 8 Mbit/s with stalls of 80 to 250 ms and bursts of loss, or dips to 200 kbit/s",
        arguments: [0, 1])
    func wireless(kind: Int) throws {
        let name = kind == 0 ? "Wi-Fi stalls" : "Wi-Fi dips"
        let scenario = try Scenario(name, seed: 41, link: Scenario.link(8_000, delay: 10))
        scenario.viewer.downlink.model.jitter = .milliseconds(5)
        scenario.viewer.downlink.model.loss = 0.01
        scenario.viewer.downlink.model.meanLossBurst = 4
        scenario.show(.simulcast())
        var random = RandomSource(seed: 41)
        while scenario.seconds < 45 {
            scenario.run(Double.random(in: 1...3, using: &random))
            if kind == 0 {
                let length = TimeInterval.milliseconds(Int64.random(in: 80...250, using: &random))
                scenario.viewer.downlink.stall(for: length, at: scenario.world.now)
            } else {
                scenario.viewer.downlink.model.rate = .kilobitsPerSecond(200)
                scenario.run(Double(Int.random(in: 1...2, using: &random)) / 10)
                scenario.viewer.downlink.model.rate = .kilobitsPerSecond(8_000)
            }
        }
        scenario.judge(kind == 0 ? Thresholds.stalls : Thresholds.dips, from: 10, wanted: ScenarioTests.all)
    }

    @Test("H5: a TCP-like flow on the same link; neither starves")
    func crossTraffic() throws {
        let scenario = try Scenario("H5 TCP-like cross traffic", seed: 51, link: Scenario.link(3_000))
        scenario.show(.simulcast())
        scenario.run(15)
        let flow = GreedyFlow(scenario.world, over: scenario.viewer)
        flow.start(for: 60)
        scenario.run(60)
        let own = scenario.settled(from: 20).map(\.rate).reduce(0, +) / Double(scenario.settled(from: 20).count)
        let other = Double(flow.delivered) * 1_428 * 8 / 60
        // The meter counts both.
        print("H5: picture \(Int((own - other) / 1e3)) kbit/s, TCP-like \(Int(other / 1e3)) kbit/s")
        scenario.judge(Thresholds.crossTraffic, from: 25, wanted: 3_000e3)
        // A picture in its smallest size survives; a quarter of the link would be fair.
        #expect(own - other >= 100e3)
        #expect(other >= 600e3)
    }
}

/// A flow that grows until it loses and then halves, as Reno does, over a client's downlink.
final class GreedyFlow {
    private let world: World
    private let client: VirtualClient
    private var window = 4.0
    private var threshold = 1e9
    private var outstanding = 0
    private var lastLoss = MonotonicTime.zero
    private var random = RandomSource(seed: 5)
    private(set) var delivered = 0

    init(_ world: World, over client: VirtualClient) {
        self.world = world
        self.client = client
    }

    func start(for seconds: Int) {
        world.repeat(every: .milliseconds(2), count: seconds * 500) { [self] _ in send() }
    }

    private func send() {
        while Double(outstanding) < window {
            outstanding += 1
            let arrivals = client.downlink.arrivals(of: 1_400, at: world.now, random: &random)
            if let time = arrivals.first {
                world.plan(at: time + client.uplink.model.delay) { [self] in acknowledged() }
            } else {
                world.plan(in: .milliseconds(150)) { [self] in lost() }
            }
        }
    }

    private func acknowledged() {
        outstanding = max(0, outstanding - 1)
        delivered += 1
        window += window < threshold ? 1 : 1 / window
    }

    private func lost() {
        outstanding = max(0, outstanding - 1)
        guard world.now - lastLoss > .milliseconds(150) else { return }
        lastLoss = world.now
        window = max(2, window / 2)
        threshold = window
    }
}

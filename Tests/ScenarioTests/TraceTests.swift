import MediaControl
import MediaEngine
import Primitives
import Simulation
import Testing

/// Links as they are outside: made from seeds, so that a run can be repeated.
@Suite("Scenario: traces", .eightSeeds)
struct TraceTests {
    @Test(
        "An LTE-like link that varies between 0.4 and 6 Mbit/s, around 1.8: 0.5 s frozen and four changes in 5 s at most",
        arguments: [1, 2])
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
        "A Wi-Fi-like link of 8 Mbit/s with bursts of loss: 0.5 s frozen at most with stalls of 80 to 250 ms, 1 s with dips to 200 kbit/s",
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
                let length = TimeSpan.milliseconds(Int64.random(in: 80...250, using: &random))
                scenario.viewer.downlink.stall(for: length, at: scenario.world.now)
            } else {
                scenario.viewer.downlink.model.rate = .kilobitsPerSecond(200)
                scenario.run(Double(Int.random(in: 1...2, using: &random)) / 10)
                scenario.viewer.downlink.model.rate = .kilobitsPerSecond(8_000)
            }
        }
        scenario.judge(kind == 0 ? Thresholds.stalls : Thresholds.dips, from: 10, wanted: ScenarioTests.all)
    }

    @Test(
        "H5, H9: a TCP flow joins the link and leaves: both have a fifth of it, and layers change twice in 5 s at most",
        arguments: [(.newReno, 300), (.cubic, 300), (.cubic, 100)] as [(TCPFlow.Control, Int64)])
    func crossTraffic(control: TCPFlow.Control, queue: Int64) throws {
        let scenario = try Scenario(
            "H5 \(control.rawValue), queue of \(queue) ms", seed: 51, link: Scenario.link(3_000))
        scenario.viewer.downlink.model.queueLimit = .milliseconds(queue)
        for _ in 0..<2 { scenario.show(.simulcast()) }
        scenario.run(15)
        let flow = TCPFlow(control, scenario.world, over: scenario.viewer)
        flow.start()
        // The fight of the first seconds is no steady state.
        scenario.run(15)
        let before = flow.bits, start = scenario.seconds
        scenario.run(60)
        let span = scenario.seconds - start, other = (flow.bits - before) / span
        let settled = scenario.settled(from: start)
        // The meter counts both.
        let own = settled.map(\.rate).reduce(0, +) / Double(settled.count) - other
        let share = own / 3_000e3, rest = other / 3_000e3
        print("H5 \(control) \(queue): videos \(Int(share * 100)) %, TCP \(Int(rest * 100)) % of the link")
        scenario.judge(Thresholds.crossTraffic, from: start, wanted: 3_000e3)
        #expect(scenario.settled(from: start).allSatisfy { $0.layers.allSatisfy { $0 >= 0 } }, "all are seen")
        #expect(share >= Thresholds.fairShare, "videos")
        #expect(rest >= Thresholds.fairShare, "TCP")
        flow.stop()
        scenario.change { _ in }
        scenario.run(15)
        let back = [0, 1].compactMap { scenario.timeToLayer(2, view: $0) }.min()
        print("H5 \(control) \(queue): the largest layer again after \(back.map { "\($0)" } ?? "never") s")
    }

    @Test(
        "H9: ten minutes of a camera with varying bitrate, on a link that almost carries all its frames: the size does not change, all frames are tried ten times at most"
    )
    func tenMinutes() throws {
        // 360 lines at 30 frames a second take nine tenths of it, and more as the camera wavers.
        let scenario = try Scenario("H9 ten minutes", seed: 61, link: Scenario.link(580))
        var plan = VideoPlan.simulcast()
        plan.temporalLayers = 3
        let camera = scenario.show(plan)
        scenario.views[0].allowThinning()
        var random = RandomSource(seed: 61)
        var drift = 0.0
        for _ in 0..<300 {
            scenario.run(2)
            drift = min(max(drift + Double.random(in: -0.08...0.08, using: &random), -0.12), 0.12)
            for (index, kilobits) in [150.0, 500, 1_700].enumerated() {
                camera.video?.layers[index].bitrate = .bitsPerSecond(Int64(kilobits * (1 + drift) * 1e3))
            }
        }
        scenario.judge(Thresholds.tenMinutes, from: 10, wanted: ScenarioTests.all)
        let decisions = scenario.world.workers[0].decisions(about: scenario.viewer.id)
        let attempts = decisions.filter { decision in
            if case .bandwidth = decision.reason { decision.layer?.point.temporal == 2 } else { false }
        }
        .count
        print("H9 ten minutes: \(attempts) times at all frames")
        #expect(scenario.settled(from: 10).allSatisfy { $0.layers[0] == 1 })
        #expect((1...Thresholds.attempts).contains(attempts))
    }
}

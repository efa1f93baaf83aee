import MediaControl
import Primitives
import Simulation
import Testing

/// A viewer that, as Firefox, takes retransmissions only after their stream named its section, has the bounds of one that takes them always.
@Suite("Scenario: Firefox", .eightSeeds)
struct FirefoxTests {
    private func scenario(_ name: String, seed: UInt64, kilobits: Int64?) throws -> Scenario {
        try Scenario("H11 \(name)", seed: seed, link: Scenario.link(kilobits), learnsRTXByMID: true)
    }

    @Test(
        "H11, H1: Firefox: a steady link's capacity is found in 10 s, held without a queue, and the layer does not change",
        arguments: [(250, 0), (500, 0), (1_000, 1), (3_000, 2)])
    func steady(kilobits: Int, layer: Int) throws {
        let scenario = try scenario("Firefox steady \(kilobits)", seed: 101, kilobits: Int64(kilobits))
        scenario.show(.simulcast())
        let isFast = Double(kilobits) * 1e3 > ScenarioTests.all
        if isFast { scenario.show(.simulcast()) }
        scenario.run(40)
        scenario.judge(
            Thresholds.steady, from: 10, wanted: ScenarioTests.all * (isFast ? 2 : 1), layer: layer)
    }

    @Test("H11: Firefox joins a camera that has just started, on an unlimited link: the largest layer within 3 s")
    func clean() throws {
        let scenario = try scenario("Firefox clean", seed: 102, kilobits: nil)
        // The first probe is padding alone: nothing was sent that could be repeated.
        scenario.viewer.uplink.model.delay = .milliseconds(5)
        scenario.hear()
        scenario.run(3)
        scenario.show(.simulcast())
        scenario.change { _ in }
        scenario.run(20)
        scenario.judge(Thresholds.clean, wanted: ScenarioTests.all, layer: 2)
    }

    @Test("H11, H2: Firefox: a link falls from 3 to 0.5 Mbit/s and rises again")
    func steps() throws {
        let scenario = try scenario("Firefox steps", seed: 103, kilobits: 3_000)
        scenario.show(.simulcast())
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(500) }
        scenario.run(20)
        #expect((scenario.timeToLayer(0) ?? .infinity) <= Thresholds.stepDown.rightLayer)
        scenario.change { $0.rate = .kilobitsPerSecond(3_000) }
        scenario.run(20)
        var limits = Thresholds.stepUp
        limits.freeze = Thresholds.stepDown.freeze
        scenario.judge(limits, from: 50, wanted: ScenarioTests.all, layer: 2)
    }

    @Test("H11: 60 kbit/s for 3 s, then 3 Mbit/s again: the largest layer within 4 s", arguments: [false, true])
    func hiccup(isFirefox: Bool) throws {
        let scenario = try Scenario(
            "H11 hiccup\(isFirefox ? ", Firefox" : "")", seed: 104, link: Scenario.link(3_000),
            learnsRTXByMID: isFirefox)
        scenario.show(.simulcast())
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(60) }
        scenario.run(3)
        scenario.change { $0.rate = .kilobitsPerSecond(3_000) }
        scenario.run(20)
        scenario.judge(Thresholds.hiccup, wanted: ScenarioTests.all, layer: 2)
    }
}

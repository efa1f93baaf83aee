import MediaControl
import Primitives
import Simulation
import Testing

/// Paths that become other ones.
@Suite("Scenario: change of network", .eightSeeds)
struct PathTests {
    @Test(
        "H4: handover from Wi-Fi to a mobile network with 80 ms more delay, after an outage of 1.5 s or at once",
        arguments: [1.5, 0])
    func farther(gap: Double) throws {
        let scenario = try Scenario("H4 farther network, \(gap) s", seed: 71, link: Scenario.link(3_000, delay: 10))
        scenario.show(.simulcast())
        scenario.run(20)
        if gap > 0 {
            scenario.viewer.uplink.model.loss = 1
            scenario.viewer.downlink.model.loss = 1
            scenario.run(gap)
        }
        let before = scenario.views[0].frames.decoded
        scenario.viewer.switchNetwork(
            uplink: LinkModel(delay: .milliseconds(50)), downlink: Scenario.link(3_000, delay: 90))
        scenario.change { _ in }
        scenario.run(2)
        #expect(scenario.views[0].frames.decoded > before + 10, "pictures again")
        scenario.run(28)
        scenario.judge(Thresholds.farther, wanted: ScenarioTests.all, layer: 2)
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

/// Losses that no queue announces.
@Suite("Scenario: policer", .eightSeeds)
struct PolicedTests {
    @Test("H9: a policer that drops what exceeds its rate and passes bursts: attempts at the next layer become rare")
    func policed() throws {
        var link = Scenario.link(nil)
        link.policer = Policer(rate: .kilobitsPerSecond(1_000))
        let scenario = try Scenario("Policed", seed: 81, link: link)
        scenario.show(.simulcast())
        scenario.run(80)
        let changes = scenario.views[0].frames.layers.count - 1
        print("Policed: \(changes) changes")
        scenario.judge(Thresholds.policed, from: 10, wanted: ScenarioTests.all, layer: 1)
        #expect(changes <= Thresholds.policedChanges)
    }
}

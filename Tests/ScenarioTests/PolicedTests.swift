import MediaControl
import Primitives
import Simulation
import Testing

/// Losses that no queue announces.
@Suite("Scenario: policer", .eightSeeds)
struct PolicedTests {
    @Test("H9: a policer that drops what exceeds its rate and passes bursts: eight changes of size at most in 80 s")
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

    @Test(
        "H9: a lone video that a policer never lets through is tried eight times at most in two minutes, and sent for 20 s at most"
    )
    func policedLoneVideo() throws {
        var link = Scenario.link(nil)
        link.policer = Policer(rate: .kilobitsPerSecond(1_000))
        let scenario = try Scenario("Policed lone video", seed: 82, link: link)
        scenario.show(.lone)
        scenario.run(120)
        // It is sent where a second has more than probes.
        let seconds = stride(from: 0, to: scenario.samples.count, by: 10).map { first in
            scenario.samples[first..<min(first + 10, scenario.samples.count)].map(\.rate).reduce(0, +) / 10
        }
        let isSent = [false] + seconds.map { $0 > 300_000 }
        let attempts = zip(isSent, isSent.dropFirst()).count { !$0 && $1 }
        print("Policed lone video: \(attempts) attempts, sent for \(isSent.count { $0 }) of \(seconds.count) s")
        #expect(attempts <= Thresholds.policedAttempts)
        #expect(isSent.count { $0 } <= Thresholds.policedSeconds)
    }
}

import Foundation
import MediaControl
import Primitives
import Simulation
import Testing

/// Links that fall far below what is being sent, over and over and at any moment between two frames. The aim of half a second is a known issue of both tests,
/// with the figures that `Thresholds.fall` states; what they are held to stands beside it.
@Suite("Scenario: steps", .eightSeeds)
struct StepTests {
    /// What the viewer saw from the first step on.
    private struct Outcome {
        var freeze = 0.0
        var changes = 0
        /// Seconds until the size was shown that it stayed at.
        var settled: [Double] = []
        var sizes = [0.0, 0.0, 0.0]
        var line: String {
            let times = settled.map { String(format: "%.1f", $0) }.joined(separator: " ")
            let shares = sizes.map { String(format: "%.0f", $0 * 100) }.joined(separator: " ")
            return String(format: "longest freeze %.0f ms, %d changes, ", freeze * 1e3, changes)
                + "settled after [\(times)] s, shares of sizes [\(shares)] %"
        }
    }

    private static func camera(temporalLayers: Int) -> VideoPlan {
        var plan = VideoPlan.simulcast()
        plan.temporalLayers = temporalLayers
        return plan
    }

    /// Plays a link of `high` kbit/s for 15 s, then `steps` of `length` seconds at `low`, `high`, `low` …
    private static func play(
        _ name: String, seed: Int, temporalLayers: Int, high: Int64, low: Int64, steps: Int, length: Double
    ) throws -> Outcome {
        let scenario = try Scenario("\(name) \(seed)", seed: UInt64(200 + 11 * seed), link: Scenario.link(high))
        scenario.show(camera(temporalLayers: temporalLayers))
        scenario.views[0].allowThinning()
        // Another moment between two frames each time.
        scenario.run(15 + 0.1 * Double(seed))
        scenario.world.run(for: .milliseconds(7 * Int64(seed)))
        let first = scenario.world.now, since = scenario.seconds
        var outcome = Outcome()
        for step in 0..<steps {
            let isLow = step % 2 == 0
            scenario.change { $0.rate = .kilobitsPerSecond(isLow ? low : high) }
            scenario.run(length)
            guard isLow else { continue }
            let change = scenario.views[0].frames.layers.last {
                ($0.time - scenario.start).seconds > scenario.lastChange
            }
            outcome.settled.append(change.map { ($0.time - scenario.start).seconds - scenario.lastChange } ?? 0)
        }
        let view = scenario.views[0]
        outcome.freeze = view.frames.longestFreeze(until: scenario.world.now).seconds
        outcome.changes = view.frames.layers.count { $0.time >= first }
        for size in 0..<3 { outcome.sizes[size] = scenario.share(ofLayer: size, from: since) }
        #expect(scenario.world.faults == [])
        Report.add(scenario, scenario.figures(from: since, wanted: ScenarioTests.all, layer: nil))
        print("\(scenario.name): \(outcome.line)")
        return outcome
    }

    private static func expectAim(of outcome: Outcome) {
        withKnownIssue("a keyframe that has lost a packet, or waits for its turn in the queue", isIntermittent: true) {
            #expect(outcome.freeze <= Thresholds.fall.aim)
        }
    }

    @Test(
        "H2: from 3 to 0.5 Mbit/s at any moment between two frames: 0.7 s frozen and two changes of size at most",
        arguments: 1...8, [1, 3])
    func down(seed: Int, temporalLayers: Int) throws {
        let outcome = try Self.play(
            "H2 down, \(temporalLayers) temporal layers", seed: seed, temporalLayers: temporalLayers, high: 3_000,
            low: 500, steps: 1, length: 20)
        #expect(outcome.freeze <= Thresholds.fall.freeze)
        #expect(outcome.changes <= Thresholds.fall.changes)
        Self.expectAim(of: outcome)
    }

    @Test(
        "H2: between 2.5 and 0.8 Mbit/s every 8 s: 0.6 s frozen and two changes of size for each step at most",
        arguments: 1...5, [1, 3])
    func sawtooth(seed: Int, temporalLayers: Int) throws {
        let outcome = try Self.play(
            "H2 sawtooth, \(temporalLayers) temporal layers", seed: seed, temporalLayers: temporalLayers, high: 2_500,
            low: 800, steps: 6, length: 8)
        #expect(outcome.freeze <= Thresholds.fall.sawtooth)
        #expect(outcome.changes <= 6 * Thresholds.fall.changes)
        Self.expectAim(of: outcome)
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

/// Delays that vary without a queue, as on Wi-Fi and mobile networks.
@Suite("Scenario: jitter", .eightSeeds)
struct JitterTests {
    struct Jitter: CustomStringConvertible {
        /// Delays are spread over twice as much, and packets overtake others.
        var milliseconds: Int64
        var reordered: Double

        static let all = [30, 60, 100].flatMap { milliseconds in
            [0.01, 0.05].map { Jitter(milliseconds: milliseconds, reordered: $0) }
        }

        var description: String { "±\(milliseconds) ms, \(Int(reordered * 100)) % reordered" }

        func apply(to link: inout LinkModel) {
            link.jitter = .milliseconds(2 * milliseconds)
            link.reorder = reordered
            link.keepsOrder = false
        }
    }

    @Test(
        "H4: jitter from the join on, without rate limit and loss: the largest layer is there within 5 s and stays",
        arguments: Jitter.all)
    func alone(jitter: Jitter) throws {
        var link = Scenario.link(nil, delay: 20)
        jitter.apply(to: &link)
        let scenario = try Scenario("H4 \(jitter)", seed: 91, link: link)
        scenario.show(.simulcast())
        scenario.hear()
        scenario.run(40)
        scenario.judge(Thresholds.jitterAlone, from: 5, wanted: ScenarioTests.all, layer: 2)
        #expect(scenario.share(ofLayer: 2, from: 5) >= Thresholds.layerKept, "\(jitter)")
    }

    @Test("H4: jitter that starts on a link of 10 Mbit/s: the layer does not change", arguments: Jitter.all)
    func begins(jitter: Jitter) throws {
        let scenario = try Scenario("H4 \(jitter) begins", seed: 92, link: Scenario.link(10_000, delay: 20))
        scenario.show(.simulcast())
        scenario.run(10)
        scenario.change { jitter.apply(to: &$0) }
        scenario.run(40)
        scenario.judge(Thresholds.jitterBegins, wanted: ScenarioTests.all, layer: 2)
        #expect(scenario.share(ofLayer: 2, from: 10) >= Thresholds.layerKept, "\(jitter)")
    }

    @Test(
        "H4: a link with ±60 ms of jitter falls from 3 to 0.5 Mbit/s: the right layer within 3 s, 1.5 s frozen at most")
    func falls() throws {
        var link = Scenario.link(3_000, delay: 20)
        Jitter(milliseconds: 60, reordered: 0.01).apply(to: &link)
        let scenario = try Scenario("H4 step down under jitter", seed: 93, link: link)
        scenario.show(.simulcast())
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(500) }
        scenario.run(20)
        scenario.judge(Thresholds.stepDownInJitter, wanted: ScenarioTests.all, layer: 0)
    }
}

import MediaControl
import MediaEngine
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
        "H11, H1: Firefox: a steady link's capacity is found in 10 s, held without a queue, and the layer changes once in 5 s at most",
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
        let probes = scenario.world.workers[0].engine.statistics.probes
        #expect(probes[.raised] > 0, "nothing else raises the estimate so soon, and it is counted")
    }

    @Test(
        "H11, H2: Firefox: a link falls from 3 to 0.5 Mbit/s and rises again: the right layer within 1.5 and 8 s, 0.7 s frozen at most"
    )
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

    @Test(
        "H11: 600 kbit/s: one change of size, to 360 lines, and no freeze of half a second", arguments: [false, true])
    func modest(isFirefox: Bool) throws {
        let scenario = try Scenario(
            "H11 600\(isFirefox ? ", Firefox" : "")", seed: 105, link: Scenario.link(600), learnsRTXByMID: isFirefox)
        scenario.hear()
        // As Chromium sends VP8: 360 lines fit with fewer frames.
        var plan = VideoPlan.simulcast()
        plan.temporalLayers = 3
        scenario.show(plan)
        scenario.views[0].allowThinning()
        scenario.run(40)
        scenario.judge(Thresholds.modest, from: 0, wanted: ScenarioTests.all, layer: 1)
        #expect(scenario.views[0].frames.layers.count <= 1 + Thresholds.modestChanges)
        #expect(scenario.share(ofLayer: 1, from: 10) >= Thresholds.layerKept)
    }

    /// Sockets of a machine that stands still keep what comes; a link that does drops it.
    struct Stall: CustomTestStringConvertible, Sendable {
        var isFirefox: Bool
        var seconds: Int64
        var isBothWays: Bool
        var kilobits: Int64?
        var testDescription: String {
            "\(isFirefox ? "Firefox" : "Chromium"), \(seconds) s\(isBothWays ? " both ways" : ""), \(kilobits.map { "\($0) kbit/s" } ?? "no limit")"
        }

        static let all = [false, true].flatMap { isFirefox in
            [nil, 3_000].flatMap { kilobits in
                [(2, false), (5, true)].map {
                    Stall(isFirefox: isFirefox, seconds: $0.0, isBothWays: $0.1, kilobits: kilobits)
                }
            }
        }
    }

    @Test(
        "H11: the viewer's machine, or both ways of its link, stand still for some seconds: the largest layer within 4 s",
        arguments: Stall.all)
    func afterStall(stall: Stall) throws {
        // Without a limit: what the slowest of machines takes from its sockets.
        let rate = Bitrate.kilobitsPerSecond(stall.kilobits ?? 50_000)
        let scenario = try Scenario(
            "H11 stall, \(stall.testDescription)", seed: 106, link: Scenario.link(stall.kilobits ?? 50_000),
            learnsRTXByMID: stall.isFirefox)
        if stall.kilobits == nil { scenario.viewer.downlink.model.queueLimit = .seconds(10) }
        scenario.viewer.uplink.model.rate = rate
        scenario.viewer.uplink.model.queueLimit = .seconds(10)
        scenario.show(.simulcast())
        scenario.run(10)
        let length = TimeSpan.seconds(stall.seconds)
        scenario.viewer.downlink.stall(for: length, at: scenario.world.now)
        if stall.isBothWays { scenario.viewer.uplink.stall(for: length, at: scenario.world.now) }
        scenario.run(Double(stall.seconds))
        scenario.change { _ in }
        scenario.run(8)
        var limits = Thresholds.stall
        limits.freeze += Double(stall.seconds) * 1_000
        scenario.judge(limits, wanted: ScenarioTests.all, layer: 2)
    }
}

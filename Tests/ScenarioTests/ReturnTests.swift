import MediaControl
import Primitives
import Simulation
import Testing

/// What must not bring the estimate down, and how everything comes back where there is little to measure with.
@Suite("Scenario: lossy return path, no RTX", .eightSeeds)
struct ReturnTests {
    @Test("H1: a viewer whose last video has ended wants nothing more of its path: no probes, and no poor quality")
    func lastVideoEnds() throws {
        let scenario = try Scenario("H1 last video ends", seed: 91, link: Scenario.link(400))
        let video = scenario.show(.simulcast())
        scenario.hear()
        scenario.run(20)
        let before = try #require(scenario.statistics)
        #expect(try #require(before.wanted) > (try #require(before.allocated)), "the link carries less than is wanted")
        scenario.world.apply(.removeTrack(video.description.id))
        scenario.run(2)
        let ended = try #require(scenario.statistics)
        #expect(ended.wanted == ended.allocated)
        scenario.run(20)
        #expect(try #require(scenario.statistics).probeBytes == ended.probeBytes)
    }

    @Test("H7: the reports on the last packets are lost when the last camera is muted: the estimate does not change")
    func muteWithoutReport() throws {
        let scenario = try Scenario("H7 mute without report", seed: 71, link: Scenario.link(3_000))
        let camera = scenario.show(.simulcast())
        scenario.run(20)
        let before = scenario.samples.last!.estimate
        scenario.viewer.uplink.model.loss = 1
        scenario.mute(camera)
        scenario.run(0.4)
        scenario.viewer.uplink.model.loss = 0
        scenario.run(30)
        let during = scenario.settled(from: 20).map(\.estimate).min()!
        print("H7 mute without report: \(Int(during / 1e3)) of \(Int(before / 1e3)) kbit/s")
        #expect(scenario.keptEstimate(of: before, from: 20))
        scenario.unmute(camera)
        scenario.run(10)
        var limits = Thresholds.screen
        // The mute is a part of the longest freeze.
        limits.freeze += 30_400
        limits.rightLayer = 3
        scenario.judge(limits, wanted: ScenarioTests.all, layer: 2)
    }

    @Test("H7: 2 % loss both ways with a screen that changes every two seconds: the estimate does not change")
    func lossyStillScreen() throws {
        let scenario = try Scenario("H7 lossy still screen", seed: 72, link: Scenario.link(3_000))
        var plan = VideoPlan.camera(
            width: 1_280, height: 720, bitrate: .kilobitsPerSecond(60), framesPerSecond: 0.5)
        plan.source = .screen
        scenario.show(plan)
        let camera = scenario.show(.simulcast())
        scenario.run(20)
        let before = scenario.samples.last!.estimate
        scenario.mute(camera)
        scenario.change { $0.loss = 0.02 }
        scenario.viewer.uplink.model.loss = 0.02
        scenario.run(180)
        let during = scenario.settled(from: 22).map(\.estimate).min()!
        print("H7 lossy still screen: \(Int(during / 1e3)) of \(Int(before / 1e3)) kbit/s")
        #expect(scenario.keptEstimate(of: before, from: 22))
        scenario.judge(Thresholds.stillScreen, from: 22, wanted: 80e3)
    }

    @Test(
        "H4: a subscriber without RTX and without audio gets video again within 4 s after an outage of 3 s",
        arguments: [900, 3_000])
    func outageWithoutRTX(kilobits: Int64) throws {
        let scenario = try Scenario(
            "H4 outage without RTX \(kilobits)", seed: 73, link: Scenario.link(kilobits), hasRTX: false)
        scenario.show(.simulcast())
        scenario.run(15)
        scenario.change { $0.loss = 1 }
        scenario.run(3)
        scenario.change { $0.loss = 0 }
        let before = scenario.views[0].frames.decoded
        scenario.run(4)
        #expect(scenario.views[0].frames.decoded > before + 10, "pictures again")
        scenario.run(20)
        scenario.judge(Thresholds.outage, wanted: ScenarioTests.all, layer: kilobits > 2_000 ? 2 : 1)
    }

    @Test("H4: a subscriber without RTX whose only video stopped for lack of bandwidth gets it back within 10 s")
    func shortageWithoutRTX() throws {
        let scenario = try Scenario("H4 shortage without RTX", seed: 74, link: Scenario.link(900), hasRTX: false)
        scenario.show(.simulcast())
        scenario.run(15)
        scenario.change { $0.rate = .kilobitsPerSecond(50) }
        scenario.run(20)
        #expect(scenario.samples.last!.layers[0] < 0, "nothing fits")
        scenario.change { $0.rate = .kilobitsPerSecond(900) }
        let before = scenario.views[0].frames.decoded
        scenario.run(10)
        #expect(scenario.views[0].frames.decoded > before + 30, "pictures again")
        scenario.run(20)
        scenario.judge(Thresholds.withoutRTX, wanted: ScenarioTests.all, layer: 1)
    }

    private func expectBack(_ scenario: Scenario) throws {
        let back = try #require(scenario.timeToLayer(0))
        print("\(scenario.name): back after \(back) s")
        #expect(back <= Thresholds.stepUp.rightLayer)
    }

    @Test(
        "H3: a lone video that heavy losses leave no bandwidth for is back within 8 s after they end, though nothing else is sent that could be lost"
    )
    func lossyLoneVideo() throws {
        let scenario = try Scenario("H3 lossy lone video", seed: 76, link: Scenario.link(3_000))
        scenario.show(.lone)
        scenario.run(20)
        scenario.change { $0.loss = 0.6 }
        scenario.run(10)
        // A probe that finds more begins a try, which ends within 0.4 s.
        #expect(
            scenario.samples.suffix(20).count { $0.rate < 500e3 } >= 15, "nothing fits, so little but probes is sent")
        scenario.change { $0.loss = 0 }
        scenario.run(20)
        // 0.4 to 3.4 s were seen with eight seeds; 5 to 126 s where probes did not lift the bound that losses set.
        try expectBack(scenario)
    }

    @Test(
        "H4: a lone video is back within 8 s after a path that was 700 ms longer for seven seconds, the way back lossy, is as before"
    )
    func longerForAWhile() throws {
        let scenario = try Scenario("H4 longer for a while", seed: 35, link: Scenario.link(3_000))
        scenario.show(.lone)
        scenario.run(15)
        scenario.change { $0.delay = .milliseconds(700) }
        scenario.viewer.uplink.model.loss = 0.15
        scenario.viewer.uplink.model.rate = .kilobitsPerSecond(60)
        scenario.run(7.3)
        scenario.change { $0 = Scenario.link(3_000) }
        scenario.viewer.uplink.model.loss = 0
        scenario.viewer.uplink.model.rate = nil
        scenario.run(30)
        // Where a queue that was taken for other traffic's was believed in for ever, nothing was sent any more.
        try expectBack(scenario)
    }

    @Test("H1: a subscriber without RTX gets the layer that its link carries within 8 s")
    func steadyWithoutRTX() throws {
        let scenario = try Scenario("H1 without RTX", seed: 75, link: Scenario.link(3_000), hasRTX: false)
        scenario.show(.simulcast())
        scenario.run(40)
        scenario.judge(Thresholds.withoutRTX, from: 10, wanted: ScenarioTests.all, layer: 2)
    }
}

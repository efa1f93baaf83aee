import MediaControl
import Primitives
import Simulation
import Testing

/// The scenario pack: real engines, real feedback, emulated links, virtual time. Limits are in Thresholds.swift.
@Suite("Scenario", .eightSeeds)
struct ScenarioTests {
    /// What three layers of 150, 500 and 1,700 kbit/s take on the wire when the largest is shown.
    static let all = 1_800e3

    @Test(
        "H1, H9: a steady link's capacity is found in 10 s, held without a queue, and the layer changes once in 5 s at most",
        arguments: [(250, 0), (500, 0), (1_000, 1), (3_000, 2)])
    func steady(kilobits: Int, layer: Int) throws {
        let scenario = try Scenario("H1 steady \(kilobits)", seed: 11, link: Scenario.link(Int64(kilobits)))
        scenario.show(.simulcast())
        // Nothing is looked for that nobody wants: two cameras want more than the fastest link carries.
        let isFast = Double(kilobits) * 1e3 > Self.all
        if isFast { scenario.show(.simulcast()) }
        scenario.run(40)
        scenario.judge(Thresholds.steady, from: 10, wanted: Self.all * (isFast ? 2 : 1), layer: layer)
    }

    @Test("H2: a link falls from 3 to 0.5 Mbit/s: the right layer within 1.5 s, 0.7 s frozen at most")
    func stepDown() throws {
        let scenario = try Scenario("H2 step down", seed: 12, link: Scenario.link(3_000))
        scenario.show(.simulcast())
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(500) }
        scenario.run(20)
        scenario.judge(Thresholds.stepDown, wanted: Self.all, layer: 0)
    }

    @Test("H2: a link rises from 0.5 to 3 Mbit/s: the largest layer within 8 s, 0.5 s frozen at most")
    func stepUp() throws {
        let scenario = try Scenario("H2 step up", seed: 13, link: Scenario.link(500))
        scenario.show(.simulcast())
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(3_000) }
        scenario.run(20)
        scenario.judge(Thresholds.stepUp, from: 30, wanted: Self.all, layer: 2)
    }

    @Test(
        "H2: a link rises from 0.7 to 3 Mbit/s for a stream with temporal layers only, of few and large frames: all frames within 8 s",
        arguments: [Codec.vp8, .vp9, .av1])
    func stepUpOfFrames(codec: Codec) throws {
        let scenario = try Scenario("H2 step up of frames, \(codec)", seed: 25, link: Scenario.link(700))
        var plan = VideoPlan.scalable(codec, spatial: 1, temporal: 3)
        plan.isScalable = codec != .vp8
        scenario.show(plan)
        scenario.views[0].allowThinning()
        scenario.run(20)
        scenario.change { $0.rate = .kilobitsPerSecond(3_000) }
        scenario.run(8)
        let risen = scenario.views[0].frames.decoded
        scenario.run(12)
        #expect(scenario.views[0].frames.decoded - risen >= 12 * 29, "all frames")
        scenario.judge(Thresholds.stepUpOfFrames, from: 28, wanted: Self.all)
    }

    @Test(
        "A link falls slowly from 3 to 0.4 Mbit/s and recovers: 0.7 s frozen at most, two changes in 5 s at most, the largest layer within 8 s"
    )
    func ramp() throws {
        let scenario = try Scenario("Ramp", seed: 14, link: Scenario.link(3_000))
        scenario.show(.simulcast())
        scenario.run(10)
        for step in 0..<104 {
            let down = step < 52
            let kilobits = down ? 3_000 - 50 * Int64(step) : 400 + 50 * Int64(step - 52)
            scenario.change { $0.rate = .kilobitsPerSecond(kilobits) }
            scenario.run(0.5)
        }
        scenario.run(10)
        var limits = Thresholds.ramp
        limits.switches = 2
        scenario.judge(limits, from: 10, wanted: Self.all, layer: 2)
    }

    @Test(
        "H3: random loss without congestion: the largest layer is left for a second at most in 48",
        arguments: [0.02, 0.05, 0.10])
    func randomLoss(share: Double) throws {
        let scenario = try Scenario("H3 loss \(Int(share * 100)) percent", seed: 15, link: Scenario.link(4_000))
        scenario.show(.simulcast())
        scenario.run(10)
        scenario.change { $0.loss = share }
        scenario.run(50)
        scenario.judge(Thresholds.randomLoss, wanted: Self.all, layer: 2)
        // None but the largest layer since the loss began.
        let shown = scenario.settled(from: 12).filter { $0.layers[0] != 2 }.count
        #expect(shown <= 10, "the layer was left for \(Double(shown) / 10) s")
    }

    @Test("H4: bursts of loss: half of what is wanted arrives, 1.5 s frozen at most")
    func bursts() throws {
        let scenario = try Scenario("H4 bursts", seed: 16, link: Scenario.link(4_000))
        scenario.show(.simulcast())
        scenario.run(10)
        scenario.change {
            $0.loss = 0.03
            $0.meanLossBurst = 6
        }
        scenario.run(40)
        scenario.judge(Thresholds.bursts, wanted: Self.all)
    }

    /// JitterTests asks for the layer, where packets overtake each other; here jitter keeps their order, and with one seed of eight 62 % of what is wanted was used.
    @Test(
        "H4: 100 ms of jitter in order, or 1 % reordered: half of what is wanted arrives, nothing is dropped, 0.7 s frozen at most",
        arguments: [0, 1])
    func jitter(kind: Int) throws {
        let scenario = try Scenario(kind == 0 ? "H4 jitter" : "H4 reorder", seed: 17, link: Scenario.link(4_000))
        scenario.show(.simulcast())
        scenario.run(10)
        scenario.change { if kind == 0 { $0.jitter = .milliseconds(100) } else { $0.reorder = 0.01 } }
        scenario.run(40)
        scenario.judge(Thresholds.jitter, wanted: Self.all)
    }

    @Test("H4: an outage of 3 s; video again within 2 s")
    func outage() throws {
        let scenario = try Scenario("H4 outage", seed: 18, link: Scenario.link(3_000))
        scenario.show(.simulcast())
        scenario.run(15)
        scenario.change { $0.loss = 1 }
        scenario.run(3)
        scenario.change { $0.loss = 0 }
        let before = scenario.views[0].frames.decoded
        scenario.run(2)
        #expect(scenario.views[0].frames.decoded > before + 10, "pictures again")
        scenario.run(20)
        scenario.judge(Thresholds.outage, wanted: Self.all, layer: 2)
    }

    @Test("H6: uplink loss of one publisher lowers no subscriber's estimate")
    func badPublisher() throws {
        let scenario = try Scenario("H6 one bad publisher", seed: 19, link: Scenario.link(3_000))
        scenario.show(.simulcast())
        let bad = scenario.world.join(scenario.room, ClientSettings(link: LinkModel(delay: .milliseconds(20))))
        scenario.show(.camera(bitrate: .kilobitsPerSecond(300)), by: bad)
        scenario.run(15)
        let before = scenario.samples.last!.estimate
        bad.uplink.model.loss = 0.15
        scenario.run(30)
        let estimates = scenario.settled(from: 15).map(\.estimate)
        #expect(estimates.min()! >= 0.98 * before, "\(estimates.min()!) of \(before)")
        var limits = Thresholds.room
        limits.estimate = 0.8...1.05
        scenario.judge(limits, from: 15, wanted: 2_200e3)
        let shown = scenario.settled(from: 16).filter { $0.layers[0] != 2 }.count
        #expect(shown == 0, "the good publisher's picture stays")
    }

    @Test("H7: a muted camera does not change the estimate; its largest layer is back within 4 s")
    func lowRate() throws {
        let scenario = try Scenario("H7 mute and unmute", seed: 20, link: Scenario.link(3_000))
        let camera = scenario.show(.simulcast())
        scenario.hear()
        scenario.run(20)
        let before = scenario.samples.last!.estimate
        scenario.mute(camera)
        scenario.run(60)
        #expect(scenario.keptEstimate(of: before, from: 20))
        scenario.unmute(camera)
        scenario.run(15)
        var limits = Thresholds.screen
        // The mute is a part of the longest freeze.
        limits.freeze += 60_000
        limits.rightLayer = 4
        scenario.judge(limits, wanted: Self.all, layer: 2)
    }

    @Test(
        "B9, H7: a screen at 4 frames per second on a link with jitter: probes stay below 10 kbit/s, it is never left out"
    )
    func stillScreen() throws {
        var link = Scenario.link(2_000)
        link.jitter = .milliseconds(20)
        let scenario = try Scenario("B9 still screen", seed: 21, link: link)
        var plan = VideoPlan.camera(
            width: 1_280, height: 720, bitrate: .kilobitsPerSecond(40), framesPerSecond: 4)
        plan.source = .screen
        scenario.show(plan)
        scenario.run(120)
        let figures = scenario.judge(Thresholds.screen, from: 20, wanted: 45e3)
        #expect(figures.probes < 10)
        #expect(scenario.settled(from: 20).allSatisfy { $0.layers[0] == 0 })
    }

    @Test(
        "All participants of a large room join at once behind one link; every video is shown, and from 15 s on its layer changes once in 5 s at most"
    )
    func bigRoom() throws {
        let scenario = try Scenario("Join of a big room", seed: 22, link: Scenario.link(4_000))
        let others = (0..<9).map { _ in scenario.world.join(scenario.room) }
        for client in others { scenario.show(.simulcast(), by: client) }
        scenario.hear()
        scenario.run(45)
        var limits = Thresholds.room
        limits.switches = 1
        scenario.judge(limits, from: 15, wanted: 4_000e3)
        #expect(scenario.samples.last!.layers.allSatisfy { $0 >= 0 }, "everybody is seen")
    }

    @Test(
        "A10: at 40 % of the required bandwidth the camera gets smaller, and the screen keeps its size and loses frames"
    )
    func screenKeepsResolution() throws {
        let scenario = try Scenario("A10 screen and camera", seed: 23, link: Scenario.link(4_000))
        var screen = VideoPlan.camera(width: 1_280, height: 720, bitrate: .kilobitsPerSecond(1_500))
        screen.source = .screen
        screen.temporalLayers = 3
        scenario.show(screen)
        scenario.views[0].allowThinning()
        scenario.show(.simulcast())
        scenario.run(15)
        let before = scenario.views[0].frames.decoded
        scenario.run(5)
        let full = scenario.views[0].frames.decoded - before
        // 1,500 and 1,700 kbit/s are wanted.
        scenario.change { $0.rate = .kilobitsPerSecond(1_280) }
        scenario.run(10)
        let then = scenario.views[0].frames.decoded
        scenario.run(10)
        let thinned = (scenario.views[0].frames.decoded - then) / 2
        scenario.judge(Thresholds.room, wanted: 1_280e3)
        #expect(full >= 140)
        #expect(thinned >= 30 && thinned <= 110, "\(thinned) of \(full) frames in 5 s")
        let settled = scenario.settled(from: 30)
        #expect(
            settled.allSatisfy { $0.layers[0] == 0 && (0...1).contains($0.layers[1]) },
            "both are seen, the camera smaller")
    }

    @Test("A11, B8: 30, 24, 15, 5 frames per second and one in 2 s: the largest layer stays")
    func cadences() throws {
        let scenario = try Scenario("B8 cadences", seed: 24, link: Scenario.link(4_000))
        let camera = scenario.show(.simulcast())
        scenario.run(10)
        for rate in [24.0, 15, 24, 5, 0.5] {
            camera.video?.framesPerSecond = rate
            // A picture in 2 s is a still one, not one of 400 kB.
            if rate < 1 { for index in 0..<3 { camera.video?.layers[index].bitrate = .kilobitsPerSecond(60) } }
            scenario.run(15)
        }
        var limits = Thresholds.screen
        limits.switches = 0
        scenario.judge(limits, from: 8, wanted: 1)
        #expect(scenario.settled(from: 8).allSatisfy { $0.layers[0] == 2 || $0.time > 65 })
        #expect(scenario.world.times { if case .trackSilent = $0 { true } else { false } }.isEmpty)
    }
}

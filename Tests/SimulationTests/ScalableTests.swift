import MediaControl
import Primitives
import Simulation
import Testing

/// A codec and how its layers hang together, as browsers call it.
struct ScalabilityMode: Sendable, CustomTestStringConvertible {
    var codec: Codec
    var spatial: Int
    var temporal: Int
    var isKey = false

    var testDescription: String { "\(codec) L\(spatial)T\(temporal)\(isKey ? "_KEY" : "")" }
    var plan: VideoPlan { .scalable(codec, spatial: spatial, temporal: temporal, keyframesOnly: isKey) }

    /// G8's.
    static let all = [Codec.vp9, .av1].flatMap {
        [
            ScalabilityMode(codec: $0, spatial: 1, temporal: 3), ScalabilityMode(codec: $0, spatial: 3, temporal: 3),
            ScalabilityMode(codec: $0, spatial: 3, temporal: 3, isKey: true),
            ScalabilityMode(codec: $0, spatial: 2, temporal: 1),
        ]
    }
    static let spatial = all.filter { $0.spatial > 1 }

    /// One of each codec is enough for a thousand.
    var manyChanges: Int { spatial == 3 && isKey == (codec == .vp9) ? 1_000 : 100 }
}

@Suite("Spatial and temporal layers in one stream (G8)")
struct ScalableTests {
    /// Small pictures, a keyframe little larger than others: what is looked at is numbers, not rates.
    private static func thin(_ mode: ScalabilityMode) -> VideoPlan {
        var plan = mode.plan
        plan.layers[0].bitrate = .kilobitsPerSecond(400)
        plan.framesPerSecond = 15
        plan.keyframeScale = 2
        return plan
    }

    /// Lets viewers change their minds about size and frames until so many changes of size were seen; the views.
    private static func play(
        _ mode: ScalabilityMode, switches: Int, link: LinkModel, seed: UInt64
    ) throws -> (world: World, views: [View], switches: Int) {
        let world = try World(seed: seed)
        let room = world.openRoom()
        let alice = world.join(room, ClientSettings(link: link))
        let camera = alice.publish(thin(mode))
        let viewers = (0..<3).map { _ in world.join(room, ClientSettings(link: link)) }
        let views = viewers.map { $0.subscribe(to: camera) }
        for view in views { view.allowThinning() }
        world.run(for: .seconds(2))
        let made = { views.map { $0.frames.layers.count - 1 }.reduce(0, +) }
        while made() < switches, world.now < MonotonicTime(milliseconds: 900_000) {
            for (viewer, view) in zip(viewers, views) where Int.random(in: 0..<3, using: &world.random) == 0 {
                viewer.prefer(.spatial(Int.random(in: 0..<mode.spatial, using: &world.random)), of: view)
                let frames = [4.0, 8, 30].randomElement(using: &world.random)
                viewer.setDisplay(of: view) { $0.framesPerSecond = frames }
            }
            world.run(for: .milliseconds(300))
        }
        return (world, views, made())
    }

    @Test(
        "G1, G8: 1,000 changes of size (some modes 100): every frame has all its references",
        arguments: ScalabilityMode.spatial)
    func thousandSwitches(mode: ScalabilityMode) throws {
        let (world, views, switches) = try Self.play(
            mode, switches: mode.manyChanges, link: LinkModel(delay: .milliseconds(5)), seed: Seeds.seed(71))
        print("\(mode.testDescription): \(switches) changes of size in \(world.now.milliseconds / 1_000) s")
        #expect(switches >= mode.manyChanges)
        #expect(world.faults == [])
        for view in views {
            #expect(view.missing == 0 && view.checker.missing == 0 && view.checker.framesCut == 0)
            let freeze = view.frames.longestFreeze(until: world.now)
            print("  \(view.frames.decoded) pictures, longest freeze \(freeze.milliseconds) ms")
            #expect(freeze < .milliseconds(600))
        }
    }

    @Test(
        "G1, G8: 100 changes of size on links that lose and reorder packets: no packet breaks an invariant of forwarding, video goes on",
        arguments: ScalabilityMode.all)
    func lossySwitches(mode: ScalabilityMode) throws {
        var link = LinkModel(delay: .milliseconds(20), loss: 0.02)
        link.reorder = 0.01
        link.jitter = .milliseconds(8)
        let (world, views, switches) = try Self.play(
            mode, switches: mode.spatial > 1 ? 100 : 0, link: link, seed: Seeds.seed(72))
        if mode.spatial == 1 { world.run(for: .seconds(20)) }
        #expect(mode.spatial == 1 || switches >= 100)
        #expect(world.faults == [])
        for view in views {
            print("\(mode.testDescription): \(view.frames.decoded) pictures, missing \(view.missing)")
            #expect(view.frames.decoded > 100)
        }
    }

    @Test(
        "H2, G8: 3 Mbit/s, 0.7, and 3 again: all frames and 0.7 s frozen at most, 1.2 s with AV1; with temporal layers alone a quarter of them and 2 s",
        arguments: ScalabilityMode.all)
    func steps(mode: ScalabilityMode) throws {
        let world = try World(seed: Seeds.seed(73))
        let room = world.openRoom()
        let link = LinkModel(delay: .milliseconds(25))
        let alice = world.join(room, ClientSettings(link: link))
        let bob = world.join(
            room,
            ClientSettings(
                uplink: link, downlink: LinkModel(delay: .milliseconds(25), rate: .kilobitsPerSecond(3_000))))
        let camera = alice.publish(mode.plan)
        let view = bob.subscribe(to: camera)
        view.allowThinning()
        var rates: [Double] = []
        // Of 1.8 Mbit/s the two lower of three layers take 430 kbit/s, the lower of two 360; a quarter of the pictures 450.
        for (rate, layer) in [(3_000, mode.spatial - 1), (700, max(mode.spatial - 2, 0)), (3_000, mode.spatial - 1)] {
            bob.downlink.model.rate = .kilobitsPerSecond(Int64(rate))
            world.run(for: .seconds(10))
            let shown = view.frames.decoded
            world.run(for: .seconds(10))
            rates.append(Double(view.frames.decoded - shown) / 10)
            #expect(view.frames.layers.last?.layer == layer)
        }
        let freeze = view.frames.longestFreeze(until: world.now)
        let layers = view.frames.layers.map { "\($0.time.milliseconds):\($0.layer)" }.joined(separator: " ")
        print("\(mode.testDescription): frames/s \(rates), layers \(layers), \(freeze) longest")
        // A quarter of the frames where there are temporal layers alone.
        #expect(rates[0] > 28 && rates[1] > (mode.spatial > 1 ? 28 : 7) && rates[2] > 28)
        switch (mode.spatial, mode.codec) {
        case (1, _):
            withKnownIssue("without a smaller size 1.8 Mbit/s fill the link until three of four frames are left out") {
                #expect(freeze <= .milliseconds(700))
            }
            // 0.96 to 1.83 s were seen with eight seeds (1.2 to 2.2 while frames of the layers that were left were repeated).
            #expect(freeze <= .milliseconds(2_000))
        case (_, .av1):
            withKnownIssue("with one of 16 seeds 0.86 to 1.01 s", isIntermittent: true) {
                #expect(freeze <= .milliseconds(700))
            }
            #expect(freeze <= .milliseconds(1_200))
        default:
            #expect(freeze <= .milliseconds(700))
        }
        #expect(world.faults == [])
    }

    @Test(
        "H10, G8: spatial layers without demand are announced within 5 s, and new demand at once",
        arguments: [Codec.vp9, .av1])
    func publisherHints(codec: Codec) throws {
        let world = try World(seed: Seeds.seed(75))
        let room = world.openRoom()
        let camera = world.join(room).publish(.scalable(codec, spatial: 3, temporal: 3))
        let viewer = world.join(room)
        let view = viewer.subscribe(to: camera)
        view.allowThinning()
        world.run(for: .seconds(5))
        for (preference, layers) in [
            (LayerPreference.height(180), [true, false, false]), (.height(360), [true, true, false]),
            (.best, [true, true, true]), (.spatial(0), [true, false, false]), (.height(400), [true, true, true]),
        ] {
            let start = world.now
            viewer.prefer(preference, of: view)
            world.run(for: .seconds(5))
            let reported = world.events.compactMap { time, event in
                if case .layersWanted(camera.id, let layers) = event { (time: time, layers: layers) } else { nil }
            }
            let last = try #require(reported.last)
            #expect(last.layers == layers)
            #expect(
                last.time - start
                    <= (preference == .height(180) || preference == .spatial(0) ? .seconds(5) : .milliseconds(20)))
            #expect(view.frames.layers.last?.layer == layers.lastIndex(of: true))
        }
        #expect(world.faults == [])
    }

    @Test(
        "G2, G8: the dependency descriptor announces the decode targets that a subscriber gets, and later all of them again"
    )
    func activeTargets() throws {
        let world = try World(seed: Seeds.seed(76))
        let room = world.openRoom()
        let camera = world.join(room).publish(.scalable(.av1, spatial: 3, temporal: 3))
        let viewer = world.join(room)
        let view = viewer.subscribe(to: camera)
        view.allowThinning()
        world.run(for: .seconds(5))
        #expect(view.activeDecodeTargets == 0b111_111_111)
        // Three targets a spatial layer, the slowest first.
        for (spatial, frames, mask) in [
            (0, nil, 0b000_000_111), (1, nil, 0b000_111_111), (1, 8.0, 0b000_001_001), (2, 8, 0b001_001_001),
            (2, nil, 0b111_111_111),
        ] as [(Int, Double?, UInt32)] {
            viewer.prefer(.spatial(spatial), of: view)
            viewer.setDisplay(of: view) { $0.framesPerSecond = frames }
            world.run(for: .seconds(3))
            #expect(view.activeDecodeTargets == mask)
        }
        #expect(world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Layer switches by request")
struct SwitchingTests {
    /// Three layers of one to three packets a frame.
    private static func layers(_ codec: Codec) -> VideoPlan {
        var plan = VideoPlan.simulcast(codec, framesPerSecond: 15)
        for (index, rate) in [60, 180, 300].enumerated() {
            plan.layers[index].bitrate = .kilobitsPerSecond(Int64(rate))
        }
        plan.keyframeScale = 2
        plan.temporalLayers = codec == .vp8 ? 3 : 1
        return plan
    }

    /// Lets viewers change their minds until so many switches were made; the views.
    private static func play(
        _ codec: Codec, switches: Int, link: LinkModel, seed: UInt64
    ) throws -> (world: World, views: [View], switches: Int) {
        let world = try World(seed: seed)
        let room = world.openRoom()
        let alice = world.join(room, ClientSettings(link: link))
        let camera = alice.publish(layers(codec))
        let viewers = (0..<3).map { _ in world.join(room, ClientSettings(link: link)) }
        let views = viewers.map { $0.subscribe(to: camera) }
        // Until the first probe bandwidth is a guess, and where losses make that take longer, pictures are thinned for a moment.
        if link.loss > 0 { for view in views { view.allowThinning() } }
        world.run(for: .seconds(2))
        let made = { views.map { $0.checker.origins.count - 1 }.reduce(0, +) }
        while made() < switches, world.now < MonotonicTime(milliseconds: 600_000) {
            for (viewer, view) in zip(viewers, views) where Int.random(in: 0..<3, using: &world.random) == 0 {
                viewer.prefer(.spatial(Int.random(in: 0..<3, using: &world.random)), of: view)
            }
            world.run(for: .milliseconds(120))
        }
        return (world, views, made())
    }

    @Test("G1, E7: 1,000 layer switches by request: one stream, no frame cut, nothing missing")
    func thousandSwitches() throws {
        let (world, views, switches) = try Self.play(
            .vp8, switches: 1_000, link: LinkModel(delay: .milliseconds(5)), seed: Seeds.seed(11))
        print("\(switches) switches in \(world.now.milliseconds / 1_000) s")
        #expect(switches >= 1_000)
        #expect(world.faults == [])
        for view in views {
            #expect(view.missing == 0 && view.checker.missing == 0 && view.checker.framesCut == 0)
            #expect(view.longestGap < .milliseconds(250))
        }
    }

    @Test("G1: switches on lossy links", arguments: [Codec.vp8, .vp9, .h264])
    func lossySwitches(codec: Codec) throws {
        var link = LinkModel(delay: .milliseconds(20), loss: 0.02)
        link.reorder = 0.01
        link.jitter = .milliseconds(8)
        let (world, views, switches) = try Self.play(codec, switches: 100, link: link, seed: Seeds.seed(12))
        #expect(switches >= 100)
        #expect(world.faults == [])
        for view in views { #expect(view.frames.decoded > 0) }
    }

    @Test("A layer that the publisher stops is replaced by the best one left, and returns")
    func stoppedLayer() throws {
        let world = try World(seed: Seeds.seed(13))
        let room = world.openRoom()
        let alice = world.join(room), bob = world.join(room)
        let camera = alice.publish(Self.layers(.vp8))
        let view = bob.subscribe(to: camera)
        world.run(for: .seconds(3))
        #expect(view.checker.origins.last?.layer == 2)
        camera.video?.layers[2].isActive = false
        world.run(for: .seconds(5))
        #expect(view.checker.origins.last?.layer == 1)
        camera.video?.layers[2].isActive = true
        world.run(for: .seconds(5))
        #expect(view.checker.origins.last?.layer == 2)
        #expect(world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Frame rates from still screens to 120 per second")
struct FrameRateTests {
    /// A publisher and a viewer on clean links, connected.
    struct Show {
        let world: World
        let room: RoomID
        let camera: Publication
        let view: View

        init(_ plan: VideoPlan, seed: UInt64) throws {
            world = try World(seed: seed)
            room = world.openRoom()
            let alice = world.join(room), bob = world.join(room)
            world.run(for: .seconds(1))
            camera = alice.publish(plan)
            view = bob.subscribe(to: camera)
        }

        var layer: LayerStatistics? { world.statistics(of: room)?.tracks.first?.layers.first }
        var silences: Int { world.times { if case .trackSilent = $0 { true } else { false } }.count }

        /// Every frame since the first keyframe was forwarded and could be shown.
        func expectEveryFrame(missingAtStart: Int = 3) {
            #expect(world.faults == [])
            #expect(view.missing == 0 && view.checker.missing == 0)
            #expect(
                view.frames.decoded >= camera.frames() - missingAtStart, "\(view.frames.decoded) of \(camera.frames())")
        }
    }

    @Test(
        "A17: files of 24 and 60 frames per second at 1080p: as many frames forwarded as sent", arguments: [24.0, 60])
    func files(framesPerSecond: Double) throws {
        let show = try Show(
            .camera(
                .h264, width: 1_920, height: 1_080, bitrate: .kilobitsPerSecond(3_000), framesPerSecond: framesPerSecond
            ),
            seed: Seeds.seed(41))
        show.world.run(for: .seconds(8))
        show.camera.isSending = false
        show.world.run(for: .seconds(1))
        // The subscription is there before the first frame is: not one may be missing.
        show.expectEveryFrame(missingAtStart: 0)
        #expect(show.view.packets == Int(show.camera.streams[0].packets))
    }

    @Test(
        "A11: 5 frames per second, then one every 2 s for 5 minutes: healthy, no keyframe request of the server's own")
    func slow() throws {
        let show = try Show(.camera(bitrate: .kilobitsPerSecond(60), framesPerSecond: 5), seed: Seeds.seed(42))
        show.world.run(for: .seconds(20))
        let requests = show.camera.keyframeRequests.count
        show.camera.video?.framesPerSecond = 0.5
        show.camera.video?.layers[0].bitrate = .kilobitsPerSecond(6)
        show.world.run(for: .seconds(300))
        show.expectEveryFrame()
        #expect(show.silences == 0)
        #expect(show.camera.keyframeRequests.count == requests && requests <= 2)
        #expect(show.layer?.isActive == true)
    }

    @Test("B7: 120, then 2, then 30 frames per second: none dropped")
    func variable() throws {
        let show = try Show(.camera(bitrate: .kilobitsPerSecond(1_000), framesPerSecond: 120), seed: Seeds.seed(43))
        show.world.run(for: .seconds(10))
        for (frames, rate) in [(2.0, Int64(20)), (30, 300)] {
            show.camera.video?.framesPerSecond = frames
            show.camera.video?.layers[0].bitrate = .kilobitsPerSecond(rate)
            show.world.run(for: .seconds(5))
        }
        show.expectEveryFrame()
        #expect(show.silences == 0)
    }

    @Test("B8: 15, 24 and 25 frames per second in turn: the measured rate follows, and every frame arrives")
    func cadences() throws {
        let show = try Show(.camera(bitrate: .kilobitsPerSecond(120), framesPerSecond: 15), seed: Seeds.seed(44))
        for frames in [15.0, 24, 25, 15] {
            show.camera.video?.framesPerSecond = frames
            show.world.run(for: .seconds(20))
            let measured = show.layer?.framesPerSecond ?? 0
            #expect(abs(measured - frames) <= 1, "measured \(measured) at \(frames)")
            #expect(show.layer?.isActive == true)
        }
        show.expectEveryFrame()
        #expect(show.silences == 0)
        #expect(show.view.checker.origins.count == 1)
    }

    @Test("B9: a still screen repeats its frame four times per second for ten minutes: healthy, a few kbit/s")
    func still() throws {
        var plan = VideoPlan.camera(bitrate: .kilobitsPerSecond(3), framesPerSecond: 4)
        plan.source = .screen
        let show = try Show(plan, seed: Seeds.seed(45))
        show.world.run(for: .seconds(600))
        show.expectEveryFrame()
        #expect(show.silences == 0)
        let bitrate = try #require(show.layer?.bitrate)
        print("\(bitrate.bitsPerSecond) bit/s, \(show.layer?.framesPerSecond ?? 0) frames/s")
        #expect(bitrate > .bitsPerSecond(2_000) && bitrate < .bitsPerSecond(8_000))
        #expect(show.camera.keyframeRequests.count <= 2)
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Start of video")
struct BeginningTests {
    /// Cameras of small rates in three layers and one viewer, on wires of 10 ms each way.
    private struct Room {
        let world: World
        let viewer: VirtualClient
        var cameras: [Publication] = []
        var views: [View] = []

        init(
            publishers: Int, rates: [Int64] = [60, 180, 300], downlink: Int64? = nil, seed: UInt64,
            prepare: (_ room: Self) -> Void = { _ in }
        ) throws {
            world = try World(seed: seed)
            let room = world.openRoom()
            let wire = LinkModel(delay: .milliseconds(10))
            viewer = world.join(
                room,
                ClientSettings(
                    uplink: wire,
                    downlink: LinkModel(delay: .milliseconds(10), rate: downlink.map { .kilobitsPerSecond($0) })))
            for _ in 0..<publishers {
                var plan = VideoPlan.simulcast()
                for (index, rate) in rates.enumerated() { plan.layers[index].bitrate = .kilobitsPerSecond(rate) }
                cameras.append(world.join(room, ClientSettings(link: wire)).publish(plan))
            }
            prepare(self)
            views = cameras.map { viewer.subscribe(to: $0) }
            for view in views { view.allowThinning() }
        }

        /// The views of which packets came within the last 100 ms.
        var flowing: [Int] {
            views.indices.filter { views[$0].lastArrival.map { world.now - $0 < .milliseconds(100) } ?? false }
        }
    }

    @Test("C8: with one video allowed, a camera that is unmuted or starts beside it is not sent at all")
    func oneTooMany() throws {
        let room = try Room(publishers: 3, seed: Seeds.seed(140)) { room in
            room.viewer.setPolicy { $0.maximumVideos = 1 }
            room.world.apply(.setTrackMuted(room.cameras[1].id, true))
            room.cameras[2].isSending = false
        }
        room.world.run(for: .seconds(6))
        #expect(room.flowing == [0])
        room.world.apply(.setTrackMuted(room.cameras[1].id, false))
        let other = room.world.clients[3]
        other.resume(room.cameras[2])
        room.world.run(for: .seconds(4))
        #expect(room.flowing == [0])
        #expect(room.views[1].packets == 0)
        #expect(room.views[2].packets == 0)
        // The place is free, and taken again.
        room.world.apply(.setTrackMuted(room.cameras[0].id, true))
        room.world.run(for: .milliseconds(300))
        #expect(room.flowing == [1])
        let before = room.views[1].packets
        room.viewer.setDisplay(of: room.views[0]) { $0.isPinned = true }
        room.world.run(for: .seconds(1))
        #expect(room.views[1].packets > before)
        room.world.apply(.setTrackMuted(room.cameras[0].id, false))
        room.world.run(for: .milliseconds(300))
        #expect(room.flowing == [0])
        // Without the limit all are there.
        room.viewer.setPolicy { _ in }
        room.world.run(for: .seconds(1))
        #expect(room.flowing == [0, 1, 2])
        // With it, what is not sent waits to be counted.
        room.world.apply(.setTrackMuted(room.cameras[2].id, true))
        room.world.run(for: .seconds(3))
        room.viewer.setPolicy { $0.maximumVideos = 1 }
        room.world.run(for: .seconds(1))
        let muted = room.views[2].packets
        room.world.apply(.setTrackMuted(room.cameras[2].id, false))
        room.world.run(for: .seconds(2))
        #expect(room.views[2].packets == muted)
        #expect(room.world.faults == [])
    }

    /// How often the largest layers were asked for keyframes.
    private func largestAsked(_ room: Room) -> Int {
        room.cameras.reduce(0) { $0 + $1.streams[2].keyframeRequests.count }
    }

    @Test("C10: all videos are resumed or bound at once: no keyframe is requested of layers that cannot be sent")
    func allAtOnce() throws {
        var room = try Room(publishers: 5, rates: [150, 500, 1_700], downlink: 1_900, seed: Seeds.seed(141))
        room.world.run(for: .seconds(20))
        #expect(room.flowing == [0, 1, 2, 3, 4])
        for view in room.views { room.viewer.setPaused(true, view) }
        room.world.run(for: .seconds(3))
        let asked = largestAsked(room)
        for view in room.views { room.viewer.setPaused(false, view) }
        room.world.run(for: .milliseconds(700))
        #expect(room.flowing == [0, 1, 2, 3, 4])
        #expect(largestAsked(room) == asked)
        room.world.run(for: .seconds(5))
        for view in room.views { room.viewer.unsubscribe(view) }
        room.world.run(for: .seconds(2))
        let before = largestAsked(room)
        room.views = room.cameras.map { room.viewer.subscribe(to: $0) }
        for view in room.views { view.allowThinning() }
        room.world.run(for: .milliseconds(700))
        #expect(room.flowing == [0, 1, 2, 3, 4])
        #expect(largestAsked(room) == before)
        #expect(room.world.faults == [])
    }

    @Test("H8: a requested larger size that does not fit causes no keyframe request")
    func largerThanFits() throws {
        let room = try Room(publishers: 1, rates: [150, 500, 1_700], downlink: 900, seed: Seeds.seed(142))
        room.world.run(for: .seconds(15))
        #expect(room.views[0].checker.origins.last?.layer == 1)
        room.viewer.prefer(.height(180), of: room.views[0])
        room.world.run(for: .seconds(6))
        #expect(room.views[0].checker.origins.last?.layer == 0)
        let asked = largestAsked(room)
        room.viewer.prefer(.best, of: room.views[0])
        room.world.run(for: .seconds(6))
        #expect(largestAsked(room) == asked)
        #expect(room.views[0].checker.origins.last?.layer == 1)
        #expect(room.world.faults == [])
    }

    @Test("B16: a camera that is enabled again shows a keyframe within a round trip to its publisher and 100 ms")
    func enabledAgain() throws {
        let world = try World(seed: Seeds.seed(144))
        let room = world.openRoom()
        let publisher = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(40))))
        let viewer = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(20))))
        let camera = publisher.publish(.simulcast()), view = viewer.subscribe(to: camera)
        view.allowThinning()
        world.run(for: .seconds(8))
        for _ in 0..<5 {
            world.apply(.setTrackMuted(camera.id, true))
            world.run(for: .seconds(3))
            let shown = view.frames.decoded, keyframes = view.frames.keyframes, start = world.now
            world.apply(.setTrackMuted(camera.id, false))
            while view.frames.decoded == shown, world.now - start < .seconds(2) { world.run(for: .milliseconds(1)) }
            print("a frame \((world.now - start).milliseconds) ms after the camera was enabled")
            #expect(view.frames.keyframes == keyframes + 1, "the first frame is a keyframe")
            // 80 ms to the publisher and back, 20 ms to the viewer.
            #expect(world.now - start <= .milliseconds(80 + 20 + 100))
            world.run(for: .seconds(1))
        }
        #expect(world.faults == [])
    }

    @Test(
        "Larger layers that start after the small one are selected once they are known to fit", arguments: [450, 4_000])
    func laterLayers(rate: Int64) throws {
        let room = try Room(publishers: 1, rates: [150, 500, 1_700], downlink: rate, seed: Seeds.seed(143)) { room in
            for layer in 1...2 { room.cameras[0].video?.layers[layer].isActive = false }
        }
        room.world.run(for: .seconds(12))
        #expect(room.views[0].checker.origins.last?.layer == 0)
        let asked = largestAsked(room)
        for layer in 1...2 { room.cameras[0].video?.layers[layer].isActive = true }
        room.world.run(for: .seconds(8))
        if rate < 1_000 {
            #expect(room.views[0].checker.origins.allSatisfy { $0.layer == 0 })
            #expect(largestAsked(room) == asked)
        } else {
            #expect(room.views[0].checker.origins.last?.layer == 2)
        }
        #expect(room.world.faults == [])
    }
}

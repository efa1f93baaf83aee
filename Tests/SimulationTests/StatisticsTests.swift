import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Statistics")
struct StatisticsTests {
    /// A figure of the server's beside the client's own.
    private static func expect(_ what: String, _ ours: Int, _ theirs: Int, at least: Int = 1) {
        print("\(what): \(ours) of \(theirs)")
        #expect(theirs >= least, "\(what) is no proof")
        #expect(abs(ours - theirs) * 50 <= theirs, "\(what)")
    }

    @Test("I6: on lossy links the server's counts match its clients' within 2 %")
    func lossyLinks() throws {
        let world = try World(seed: Seeds.seed(151))
        let room = world.openRoom()
        // What is counted on both sides must arrive there: media is lost, reports on it are not.
        let clean = LinkModel(delay: .milliseconds(20)), lossy = LinkModel(delay: .milliseconds(20), loss: 0.03)
        let alice = world.join(room, ClientSettings(uplink: lossy, downlink: clean))
        let bob = world.join(room, ClientSettings(uplink: clean, downlink: lossy))
        let camera = alice.publish(.camera(bitrate: .kilobitsPerSecond(800)))
        let view = bob.subscribe(to: camera)
        world.run(for: .seconds(40))
        camera.isSending = false
        world.run(for: .seconds(2))
        let statistics = try #require(world.statistics(of: room))
        let layer = try #require(statistics.tracks.first?.layers.first)
        let sent = try #require(statistics.subscriptions.first), stream = camera.streams[0]
        // What came as a repair is counted apart.
        Self.expect(
            "packets received", Int(layer.packetsReceived + layer.packetsRepaired), Int(stream.packets), at: 1_000)
        Self.expect("frames received", Int(layer.framesReceived), camera.frames(), at: 1_000)
        Self.expect("numbers asked for", Int(layer.nacksSent), stream.nacks.count, at: 50)
        Self.expect("keyframes asked for", Int(layer.keyframeRequestsSent), stream.keyframeRequests.count)
        // Of what the publisher sent again, some came although the packet had come.
        #expect(Int(layer.packetsRepaired) <= stream.repeats && Int(layer.packetsRepaired) * 10 >= stream.repeats * 8)
        Self.expect("packets sent", Int(sent.packetsSent), view.checker.packets, at: 1_000)
        Self.expect("numbers that the viewer asked for", Int(sent.nacksReceived), view.nacks, at: 50)
        // Probes are repeats that nobody asked for.
        #expect((view.repaired...view.checker.repeats).contains(Int(sent.retransmissionsSent)) && view.repaired > 50)
        #expect(sent.keyframeRequestsReceived == UInt64(view.keyframeRequests))
        #expect(world.faults == [])
    }

    @Test("A12: the layer selected by height follows when the publisher's sizes change")
    func heights() throws {
        let world = try World(seed: Seeds.seed(152))
        let room = world.openRoom()
        let camera = world.join(room).publish(.simulcast()), viewer = world.join(room)
        let view = viewer.subscribe(to: camera)
        viewer.prefer(.height(360), of: view)
        world.run(for: .seconds(8))
        #expect(view.checker.origins.last?.layer == 1)
        for (divisor, layer) in [(2, 2), (1, 1), (2, 2)] {
            var plan = VideoPlan.simulcast()
            for index in plan.layers.indices {
                plan.layers[index].width /= divisor
                plan.layers[index].height /= divisor
            }
            camera.replaceSource(plan)
            world.run(for: .seconds(6))
            #expect(view.checker.origins.last?.layer == layer)
        }
        #expect(world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Unchanged sections during renegotiation")
struct RenegotiationTests {
    @Test(
        "D3: thirty renegotiations that add and end tracks of both sides: unchanged audio and video pause at most 50 ms"
    )
    func untouchedSections() throws {
        let world = try World(seed: Seeds.seed(61))
        let room = world.openRoom()
        let link = LinkModel(delay: .milliseconds(20))
        let alice = world.join(room, ClientSettings(link: link)), bob = world.join(room, ClientSettings(link: link))
        let microphone = alice.publish(), camera = alice.publish(.camera())
        let audio = bob.subscribe(to: microphone), view = bob.subscribe(to: camera)
        world.run(for: .seconds(5))
        let requests = camera.keyframeRequests.count
        for untouched in [audio, view] { untouched.resetGap(at: world.now) }
        var others: [(publisher: VirtualClient, track: Publication, viewer: VirtualClient, view: View)] = []
        for round in 0..<30 {
            if round % 3 == 2 {
                let gone = others.removeFirst()
                gone.viewer.unsubscribe(gone.view)
                gone.publisher.unpublish(gone.track)
            } else {
                let (publisher, viewer) = round % 2 == 0 ? (alice, bob) : (bob, alice)
                let small = VideoPlan.camera(width: 320, height: 180, bitrate: .kilobitsPerSecond(60))
                let track = round % 4 < 2 ? publisher.publish(small) : publisher.publish()
                others.append((publisher, track, viewer, viewer.subscribe(to: track)))
            }
            // What goes on is described again, as after every answer.
            for track in [microphone, camera] { world.apply(.updateTrack(track.description)) }
            for untouched in [audio, view] { world.apply(.updateSubscription(untouched.description)) }
            world.run(for: .milliseconds(500))
        }
        // What is on its way arrives.
        for track in [microphone, camera] { track.isSending = false }
        world.run(for: .milliseconds(40))
        print("longest pause: audio \(audio.longestGap.milliseconds) ms, video \(view.longestGap.milliseconds) ms")
        #expect(world.faults == [])
        for untouched in [audio, view] {
            #expect(untouched.longestGap <= .milliseconds(50))
            #expect(untouched.missing == 0 && untouched.checker.missing == 0)
        }
        #expect(camera.keyframeRequests.count == requests)
        #expect(others.allSatisfy { $0.view.packets > 0 || $0.track === others.last?.track })
    }

    @Test("A15, A12: another camera in the same stream, twenty times: gaps below 200 ms, sizes reported within 1 s")
    func cameraSwitch() throws {
        let world = try World(seed: Seeds.seed(62))
        let room = world.openRoom()
        let alice = world.join(room), bob = world.join(room)
        let camera = alice.publish(.camera(framesPerSecond: 30)), view = bob.subscribe(to: camera)
        world.run(for: .seconds(3))
        let requests = camera.keyframeRequests.count
        var longest = TimeSpan.zero, latest = TimeSpan.zero
        for round in 0..<20 {
            let (width, height, rate) = [(1_280, 720, 30.0), (375, 667, 24), (414, 896, 60), (961, 541, 15)][round % 4]
            view.resetGap(at: view.lastArrival ?? world.now)
            // The new camera needs a tenth of a second for its first picture.
            camera.isSending = false
            world.run(for: .milliseconds(100))
            let start = world.now
            camera.replaceSource(.camera(width: width, height: height, framesPerSecond: rate))
            alice.resume(camera)
            world.run(for: .milliseconds(1_500))
            longest = max(longest, view.longestGap)
            let reported = world.times { $0 == .trackDimensions(camera.id, layer: 0, width: width, height: height) }
            latest = max(latest, try #require(reported.last) - start)
            #expect(try #require(reported.last) >= start)
            let layer = try #require(world.statistics(of: room)?.tracks.first?.layers.first)
            #expect(layer.width == width && layer.height == height)
        }
        print("longest gap \(longest.milliseconds) ms, size reported after \(latest.milliseconds) ms")
        #expect(longest < .milliseconds(200))
        #expect(latest <= .seconds(1))
        #expect(world.faults == [])
        #expect(view.missing == 0)
        #expect(camera.keyframeRequests.count == requests, "nobody had to ask for a keyframe")
        #expect(world.times { if case .trackSilent = $0 { true } else { false } }.isEmpty)
    }
}

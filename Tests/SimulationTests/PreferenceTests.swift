import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Subscribers' preferences and how soon they take effect")
struct PreferenceTests {
    /// A viewer of one camera or several in three layers, on wires of 10 ms each way; everything is settled.
    private struct Room {
        let world: World
        let viewer: VirtualClient
        var cameras: [Publication] = []
        var voices: [Publication] = []
        var views: [View] = []

        init(publishers: Int, seed: UInt64, _ policy: (inout DownlinkPolicy) -> Void = { _ in }) throws {
            world = try World(seed: seed)
            let room = world.openRoom()
            viewer = world.join(room)
            viewer.setPolicy(policy)
            for _ in 0..<publishers {
                let publisher = world.join(room)
                var plan = VideoPlan.simulcast()
                // The rates are not what is looked at.
                for (index, rate) in [60, 180, 300].enumerated() {
                    plan.layers[index].bitrate = .kilobitsPerSecond(Int64(rate))
                }
                cameras.append(publisher.publish(plan))
                var voice = AudioPlan()
                voice.level = 127
                voices.append(publisher.publish(voice))
            }
            views = cameras.map { viewer.subscribe(to: $0) }
            for view in views { view.allowThinning() }
            world.run(for: .seconds(8))
        }

        /// How long it takes until `isThere`; nil: longer than 2 s.
        func wait(for isThere: () -> Bool) -> TimeSpan? {
            let start = world.now
            while world.now - start < .seconds(2) {
                if isThere() { return world.now - start }
                world.run(for: .milliseconds(5))
            }
            return nil
        }

        /// The views of which packets came within the last 100 ms.
        var flowing: [Int] {
            views.indices.filter { views[$0].lastArrival.map { world.now - $0 < .milliseconds(100) } ?? false }
        }

        func layer(_ view: Int) -> Int? { views[view].checker.origins.last?.layer }
    }

    /// A viewer behind a link of `rate`, and two cameras in three layers with temporal layers.
    private struct Narrow {
        let world: World
        let viewer: VirtualClient
        let cameras: [Publication]
        let views: [View]

        init(rate: Int64, seed: UInt64, sendsFeedback: Bool = true) throws {
            world = try World(seed: seed)
            let room = world.openRoom()
            let link = LinkModel(delay: .milliseconds(25), rate: .kilobitsPerSecond(rate))
            var settings = ClientSettings(uplink: LinkModel(delay: .milliseconds(25)), downlink: link)
            settings.sendsFeedback = sendsFeedback
            let viewer = world.join(room, settings)
            let world = world
            cameras = (0..<2).map { _ in
                var plan = VideoPlan.simulcast()
                plan.temporalLayers = 3
                return world.join(room).publish(plan)
            }
            views = cameras.map { viewer.subscribe(to: $0) }
            for view in views { view.allowThinning() }
            self.viewer = viewer
        }

        /// Layer and frames per second of each view, over the last 5 of `seconds`.
        func run(_ seconds: Int64) -> [(layer: Int, framesPerSecond: Double)] {
            world.run(for: .seconds(seconds - 5))
            let before = views.map(\.frames.decoded)
            world.run(for: .seconds(5))
            let shown = zip(views, before).map { view, before in
                (
                    layer: view.checker.origins.last?.layer ?? -1,
                    framesPerSecond: Double(view.frames.decoded - before) / 5
                )
            }
            print("shown: \(shown)")
            return shown
        }
    }

    @Test(
        "A10: of two equal cameras at 40 % of their bandwidth, the one with the detail hint keeps its size and loses frames"
    )
    func detail() throws {
        let room = try Narrow(rate: 1_400, seed: Seeds.seed(97))
        var traits = TrackTraits()
        traits.hint = .detail
        room.world.apply(.setTrackTraits(room.cameras[1].id, traits))
        let shown = room.run(25)
        #expect(shown.allSatisfy { $0.layer > 0 && $0.framesPerSecond > 5 }, "neither is held or small")
        withKnownIssue(
            "the other camera keeps a larger size that it had first: nothing that is sent is withdrawn without congestion",
            isIntermittent: true
        ) {
            #expect(shown[1].layer == 2 && shown[1].framesPerSecond < 20 && shown[1].framesPerSecond > 3)
            #expect(shown[0].layer < 2 && shown[0].framesPerSecond > 12)
        } when: {
            // Of 16 other seeds, with 60 for the whole call.
            Environment.seed != nil
        }
    }

    @Test(
        "H8: the subscriber's priority decides which video gets more, after a minute at the latest, and overrides the publisher's"
    )
    func priorities() throws {
        let room = try Narrow(rate: 900, seed: Seeds.seed(98))
        var traits = TrackTraits()
        traits.priority = .high
        room.world.apply(.setTrackTraits(room.cameras[0].id, traits))
        var published = room.run(20)
        // Whole sizes or half the frames: more is more.
        func isRight() -> Bool {
            (published[0].layer, published[0].framesPerSecond) > (published[1].layer, published[1].framesPerSecond)
        }
        withKnownIssue("after a failed rise the next one waits: with two of 16 seeds for longer", isIntermittent: true)
        {
            #expect(isRight(), "after 20 s")
        }
        if !isRight() { published = room.run(40) }
        #expect(isRight(), "after a minute")
        room.viewer.setDisplay(of: room.views[0]) { $0.priority = .low }
        room.viewer.setDisplay(of: room.views[1]) { $0.priority = .high }
        let chosen = room.run(25)
        #expect((chosen[1].layer, chosen[1].framesPerSecond) > (chosen[0].layer, chosen[0].framesPerSecond))
    }

    @Test("B8: fewer frames on request: evenly spaced, at once, and all of them again")
    func frameRates() throws {
        let room = try Narrow(rate: 20_000, seed: Seeds.seed(99))
        #expect(room.run(10).allSatisfy { $0.layer == 2 && $0.framesPerSecond > 28 })
        room.viewer.setDisplay(of: room.views[0]) { $0.framesPerSecond = 15 }
        let thinned = room.run(6)
        #expect((13...16).contains(thinned[0].framesPerSecond) && thinned[0].layer == 2)
        #expect(thinned[1].framesPerSecond > 28)
        room.viewer.setDisplay(of: room.views[0]) { _ in }
        #expect(room.run(7)[0].framesPerSecond > 28)
        #expect(room.world.faults == [])
    }

    @Test("B8: fewer frames on request follow the camera's frame rate, also for a viewer without any feedback")
    func frameRateOfTheCamera() throws {
        let room = try Narrow(rate: 20_000, seed: Seeds.seed(99), sendsFeedback: false)
        room.viewer.setDisplay(of: room.views[0]) { $0.framesPerSecond = 15 }
        #expect((13...16).contains(room.run(12)[0].framesPerSecond), "every second frame of 30")
        // The light goes: half of these would be 7.5.
        room.cameras[0].video?.framesPerSecond = 15
        #expect(room.run(10)[0].framesPerSecond > 13)
        #expect(room.world.faults == [])
    }

    @Test("H8: a larger and a smaller size are shown within 300 ms of the request")
    func sizes() throws {
        let room = try Room(publishers: 1, seed: Seeds.seed(91))
        for (height, layer) in [(180, 0), (720, 2), (360, 1), (720, 2), (180, 0)] {
            room.viewer.prefer(.height(height), of: room.views[0])
            let time = try #require(room.wait { room.layer(0) == layer }, "no layer \(layer)")
            print("\(height) lines after \(time.milliseconds) ms")
            #expect(time <= .milliseconds(300))
            room.world.run(for: .seconds(3))
            #expect(room.layer(0) == layer)
        }
        #expect(room.world.faults == [])
    }

    @Test("Hidden: nothing is sent after 300 ms; shown again: video within 300 ms")
    func hiding() throws {
        let room = try Room(publishers: 2, seed: Seeds.seed(92))
        #expect(room.flowing == [0, 1])
        room.viewer.setDisplay(of: room.views[0]) { $0.isHidden = true }
        room.world.run(for: .milliseconds(300))
        #expect(room.flowing == [1])
        room.world.run(for: .seconds(2))
        let before = room.views[0].packets
        room.viewer.setDisplay(of: room.views[0]) { _ in }
        let time = try #require(room.wait { room.views[0].packets > before })
        print("shown again after \(time.milliseconds) ms")
        #expect(time <= .milliseconds(300))
        #expect(room.world.faults == [])
    }

    @Test(
        "B13: a publisher without simulcast settles under a cap of 1,440 kbit/s within 5 s, from the start and while it sends"
    )
    func cappedPublisher() throws {
        let world = try World(seed: Seeds.seed(96))
        let room = world.openRoom()
        let publisher = world.join(room), viewer = world.join(room)
        let natural = Bitrate.kilobitsPerSecond(3_000)
        let camera = publisher.publish(.camera(bitrate: natural))
        var description = camera.description
        description.feedback.insert(.remb)
        world.apply(.updateTrack(description))
        viewer.subscribe(to: camera).allowThinning()

        /// Runs a sender that follows what it is sent, as libwebrtc does beside transport-wide feedback; its rate in the last second.
        func send(for seconds: Int) -> Double {
            var rates: [Double] = []
            for _ in 0..<seconds {
                let before = world.statistics(of: room)?.tracks.first?.layers.first?.bytesReceived ?? 0
                for _ in 0..<10 {
                    world.run(for: .milliseconds(100))
                    camera.video?.layers[0].bitrate = min(natural, publisher.maximumBitrate ?? natural)
                }
                let after = world.statistics(of: room)?.tracks.first?.layers.first?.bytesReceived ?? 0
                rates.append(Double(after - before) * 8 / 1_000)
            }
            print("kbit/s second by second: \(rates.map { Int($0) })")
            return rates.last ?? 0
        }
        #expect(send(for: 3) > 2_500)
        world.apply(.setTrackMaximumBitrate(camera.id, .kilobitsPerSecond(1_440)))
        #expect(send(for: 5) <= 1_440 * 1.05)
        #expect(try #require(publisher.maximumBitrate) <= .kilobitsPerSecond(1_440), "what is asked for has no slack")
        world.apply(.setTrackMaximumBitrate(camera.id, .kilobitsPerSecond(300)))
        #expect(send(for: 5) <= 300 * 1.1)
        #expect(try #require(publisher.maximumBitrate) <= .kilobitsPerSecond(300))
        // And lifted again.
        world.apply(.setTrackMaximumBitrate(camera.id, nil))
        #expect(send(for: 5) > 2_500)
        // A muted picture's part is not what another may send more.
        let second = publisher.publish(.camera(bitrate: .kilobitsPerSecond(100)))
        var other = second.description
        other.feedback.insert(.remb)
        world.apply(.updateTrack(other))
        world.apply(.setTrackMuted(second.id, true))
        for track in [camera, second] {
            world.apply(.setTrackMaximumBitrate(track.id, .kilobitsPerSecond(1_440)))
        }
        #expect(send(for: 5) <= 1_440 * 1.05)
        #expect(world.faults == [])
    }

    @Test("H10: layers without demand are announced within 5 s, and new demand at once")
    func publisherHints() throws {
        let room = try Room(publishers: 1, seed: Seeds.seed(94))
        let track = room.cameras[0].id
        /// All demands that the publisher was sent.
        func reported() -> [(time: MonotonicTime, layers: [Bool])] {
            room.world.events.compactMap { time, event in
                if case .layersWanted(track, let layers) = event { (time, layers) } else { nil }
            }
        }
        #expect(reported().isEmpty, "all are wanted from the start")
        for (preference, layers) in [
            (LayerPreference.height(180), [true, false, false]), (.best, [true, true, true]),
            (.height(360), [true, true, false]), (.rid("q"), [true, false, false]), (.spatial(2), [true, true, true]),
        ] {
            let start = room.world.now
            room.viewer.prefer(preference, of: room.views[0])
            room.world.run(for: .seconds(5))
            let last = try #require(reported().last)
            print("\(preference): \(last.layers) after \((last.time - start).milliseconds) ms")
            #expect(last.layers == layers)
            #expect(last.time - start <= (layers == [true, true, true] ? .milliseconds(20) : .seconds(5)))
        }
        // Looked away and back within a moment: nothing is reported.
        let count = reported().count
        for _ in 0..<4 {
            room.viewer.setDisplay(of: room.views[0]) { $0.isHidden = true }
            room.world.run(for: .milliseconds(1_500))
            room.viewer.setDisplay(of: room.views[0]) { _ in }
            room.world.run(for: .milliseconds(700))
        }
        #expect(reported().count == count)
        // Nobody looks: none is wanted. Nobody is there: the smallest is, for whoever comes.
        room.viewer.setDisplay(of: room.views[0]) { $0.isHidden = true }
        room.world.run(for: .seconds(3))
        #expect(reported().last?.layers == [false, false, false])
        room.viewer.unsubscribe(room.views[0])
        room.world.run(for: .seconds(3))
        #expect(reported().last?.layers == [true, false, false])
        _ = room.viewer.subscribe(to: room.cameras[0])
        room.world.run(for: .milliseconds(20))
        #expect(reported().last?.layers == [true, true, true])
    }

    @Test(
        "H10: a publisher follows the announced demand: a layer stops, resumes on request, and is shown within a second"
    )
    func followedHints() throws {
        let room = try Room(publishers: 1, seed: Seeds.seed(95))
        var handled = 0
        func obey(for time: TimeSpan) {
            let end = room.world.now + time
            while room.world.now < end {
                room.world.run(for: .milliseconds(20))
                for (_, event) in room.world.events[handled...] {
                    guard case .layersWanted(room.cameras[0].id, let layers) = event else { continue }
                    for (index, isWanted) in layers.enumerated() {
                        room.cameras[0].video?.layers[index].isActive = isWanted
                    }
                }
                handled = room.world.events.count
            }
        }
        room.viewer.prefer(.height(180), of: room.views[0])
        obey(for: .seconds(5))
        #expect(room.cameras[0].video?.layers.map(\.isActive) == [true, false, false])
        #expect(room.layer(0) == 0)
        let frames = room.views[0].frames.decoded
        room.viewer.prefer(.best, of: room.views[0])
        obey(for: .seconds(1))
        #expect(room.layer(0) == 2)
        #expect(room.views[0].frames.decoded > frames + 20, "the small picture goes on until the large one is there")
        #expect(room.world.faults == [])
    }

    @Test(
        "C8: one video of six is sent: the pinned one, else the speaker's, without renegotiation and within 300 ms")
    func oneOfSix() throws {
        let room = try Room(publishers: 6, seed: Seeds.seed(93)) { $0.maximumVideos = 1 }
        #expect(room.flowing == [0])
        // Somebody speaks: the picture follows the room's dominant speaker.
        room.voices[3].audio?.level = 20
        let isTold = { (event: MediaEvent) in
            if case .dominantSpeakerChanged(_, room.voices[3].id) = event { true } else { false }
        }
        while room.world.times(where: isTold).isEmpty, room.world.now < MonotonicTime(milliseconds: 60_000) {
            room.world.run(for: .milliseconds(5))
        }
        let time = try #require(room.wait { room.views[3].packets > 0 })
        print("the speaker's picture \(time.milliseconds) ms after it dominates")
        #expect(time <= .milliseconds(300))
        room.world.run(for: .milliseconds(300))
        #expect(room.flowing == [3])
        // A pin is stronger.
        room.viewer.setDisplay(of: room.views[5]) { $0.isPinned = true }
        #expect(try #require(room.wait { room.views[5].packets > 0 }) <= .milliseconds(300))
        room.world.run(for: .milliseconds(300))
        #expect(room.flowing == [5])
        // What is hidden takes no place.
        room.viewer.setDisplay(of: room.views[5]) {
            $0.isPinned = true
            $0.isHidden = true
        }
        room.world.run(for: .milliseconds(400))
        #expect(room.flowing == [3])
        #expect(room.world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Loss and its repair")
struct RepairTests {
    @Test(
        "G3: 5 % loss each way: at least 99.9 % of packets received after repair, none retransmitted twice within a round trip"
    )
    func fivePercent() throws {
        let world = try World(seed: Seeds.seed(21))
        let room = world.openRoom()
        let link = LinkModel(delay: .milliseconds(20), loss: 0.05)
        let alice = world.join(room, ClientSettings(link: link)), bob = world.join(room, ClientSettings(link: link))
        let camera = alice.publish(.camera(.vp8, bitrate: .kilobitsPerSecond(800)))
        let view = bob.subscribe(to: camera)
        var lastRepair: [Int64: MonotonicTime] = [:]
        var hasty = 0
        view.onRepair = { number, now in
            if let last = lastRepair[number], now - last < .milliseconds(40) { hasty += 1 }
            lastRepair[number] = now
        }
        // Who joins misses what was sent before its first keyframe: counted is what is sent after a pause, in which everything on its way arrives.
        world.run(for: .seconds(2))
        camera.isSending = false
        world.run(for: .seconds(1))
        let before = (
            sent: camera.streams[0].packets, arrived: view.packets, frames: camera.frames(),
            decoded: view.frames.decoded
        )
        camera.isSending = true
        world.run(for: .seconds(40))
        camera.isSending = false
        world.run(for: .seconds(2))
        let sent = Int(camera.streams[0].packets - before.sent), arrived = Int(view.packets - before.arrived)
        let share = Double(arrived) / Double(sent), decoded = view.frames.decoded - before.decoded
        print("\(arrived) of \(sent) delivered (\(share)), \(view.repaired) by repair, \(decoded) frames")
        #expect(world.faults == [])
        #expect(share >= 0.999)
        #expect(view.checker.missing <= sent / 1_000)
        #expect(hasty == 0)
        #expect(Double(decoded) >= 0.99 * Double(camera.frames() - before.frames))
    }

    @Test("G4: a packet that never arrives is requested once per round trip, at most ten times, then one keyframe is")
    func neverAnswered() throws {
        let world = try World(seed: Seeds.seed(22))
        let room = world.openRoom()
        var settings = ClientSettings(link: LinkModel(delay: .milliseconds(25)))
        settings.answersNACK = false
        let alice = world.join(room, settings), bob = world.join(room)
        let camera = alice.publish(.camera(framesPerSecond: 15))
        let view = bob.subscribe(to: camera)
        world.run(for: .seconds(6))
        let asked = camera.keyframeRequests.count
        alice.uplink.model.loss = 1
        world.run(for: .milliseconds(70))
        alice.uplink.model.loss = 0
        world.run(for: .seconds(6))
        let byNumber = Dictionary(grouping: camera.streams[0].nacks, by: \.number).mapValues { $0.map(\.time) }
        #expect(!byNumber.isEmpty)
        for (number, times) in byNumber {
            #expect(times.count <= 10, "\(number) was asked for \(times.count) times")
            for (before, after) in zip(times, times.dropFirst()) {
                #expect(
                    after - before >= .milliseconds(45),
                    "\(number) was asked for again after \((after - before).milliseconds) ms")
            }
        }
        #expect(camera.keyframeRequests.count == asked + 1)
        #expect(view.lastArrival.map { world.now - $0 < .milliseconds(200) } == true)
        #expect(world.faults == [])
    }

    @Test("G4: a packet of a distant publisher that receives nothing is requested once per round trip, too")
    func distantPublisher() throws {
        let world = try World(seed: Seeds.seed(28))
        let room = world.openRoom()
        var settings = ClientSettings(link: LinkModel(delay: .milliseconds(150)), profile: .publishOnly)
        settings.uplink.loss = 0.03
        let alice = world.join(room, settings), bob = world.join(room)
        let camera = alice.publish(.camera())
        _ = bob.subscribe(to: camera)
        // The first check of the path has been answered by then.
        world.run(for: .seconds(3))
        let measured = world.now
        world.run(for: .seconds(20))
        let nacks = camera.streams[0].nacks.filter { $0.time > measured + .milliseconds(300) }
        let byNumber = Dictionary(grouping: nacks, by: \.number).mapValues { $0.map(\.time) }
        #expect(byNumber.count > 20)
        for (number, times) in byNumber {
            for (before, after) in zip(times, times.dropFirst()) {
                #expect(
                    after - before >= .milliseconds(280),
                    "\(number) was asked for again after \((after - before).milliseconds) ms")
            }
        }
        #expect(world.faults == [])
    }

    @Test("G5: 100 joins in 100 ms: at most two keyframe requests to the publisher")
    func hundredJoins() throws {
        let world = try World(seed: Seeds.seed(23))
        let room = world.openRoom()
        let alice = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10))))
        let camera = alice.publish(.camera(bitrate: .kilobitsPerSecond(100), framesPerSecond: 10))
        world.run(for: .seconds(3))
        let before = camera.keyframeRequests.count
        var views: [View] = []
        world.repeat(every: .milliseconds(1), count: 100) { _ in
            views.append(
                world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)))).subscribe(to: camera))
        }
        world.run(for: .milliseconds(1_000))
        let requests = camera.keyframeRequests.count - before
        print("\(requests) keyframe requests for \(views.count) joins")
        #expect(requests >= 1 && requests <= 2)
        for view in views { #expect(view.frames.decoded > 0) }
        #expect(world.faults == [])
    }

    @Test("C10: pause all video: nothing after 200 ms; resume: one keyframe request per publisher")
    func pauseAll() throws {
        let world = try World(seed: Seeds.seed(24))
        let room = world.openRoom()
        let cameras = (0..<5).map { _ in
            world.join(room).publish(.camera(bitrate: .kilobitsPerSecond(150), framesPerSecond: 15))
        }
        let phone = world.join(room)
        let views = cameras.map { phone.subscribe(to: $0) }
        world.run(for: .seconds(5))
        for view in views { phone.setPaused(true, view) }
        world.run(for: .milliseconds(200))
        let quiet = phone.traffic.rtpPackets
        world.run(for: .seconds(3))
        #expect(phone.traffic.rtpPackets == quiet)
        let before = cameras.map(\.keyframeRequests.count)
        for view in views { phone.setPaused(false, view) }
        world.run(for: .seconds(2))
        #expect(cameras.map(\.keyframeRequests.count) == before.map { $0 + 1 })
        for view in views { #expect(view.lastArrival.map { world.now - $0 < .milliseconds(150) } == true) }
        #expect(world.faults == [])
    }

    @Test("F7: replayed and forged packets are counted and never forwarded")
    func replayed() throws {
        let world = try World(seed: Seeds.seed(25))
        let room = world.openRoom()
        var link = LinkModel(delay: .milliseconds(5))
        link.duplicates = 0.3
        let alice = world.join(room, ClientSettings(uplink: link, downlink: LinkModel(delay: .milliseconds(5))))
        let bob = world.join(room)
        let microphone = alice.publish()
        let view = bob.subscribe(to: microphone)
        world.repeat(every: .milliseconds(7), count: 500) { turn in
            var forged: [UInt8] = [0x80, 111, UInt8(turn >> 8), UInt8(turn & 255), 0, 0, 0, 0]
            let ssrc = microphone.streams[0].ssrc
            forged += (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * UInt32($0))) }
            forged += (0..<60).map { _ in UInt8.random(in: 0...255, using: &world.random) }
            world.inject(forged, from: alice.address)
        }
        world.run(for: .seconds(5))
        let drops = world.workers[0].statistics.drops
        #expect(drops[.srtpReplayed] > 30)
        #expect(drops[.srtpAuthentication] + drops[.srtpReplayed] > 500)
        #expect(view.duplicates == 0 && view.missing == 0 && view.checker.missing == 0)
        #expect(view.packets >= microphone.frames() - 2)
        #expect(world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Publish-only participants")
struct BroadcasterTests {
    @Test(
        "B1, B2, B3: 20 others talk for ten minutes: no RTP, at most 5 kbit/s, nothing about others, no downlink state")
    func quietDownlink() throws {
        let world = try World(seed: Seeds.seed(51))
        let room = world.openRoom()
        let members = (0..<20).map { _ in world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)))) }
        let microphones = members.map { $0.publish(AudioPlan(packetDuration: .milliseconds(120))) }
        let listener = members[0]
        for microphone in microphones.dropFirst().prefix(3) { _ = listener.subscribe(to: microphone) }
        let bot = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)), profile: .publishOnly))
        let screen = bot.publish(.camera(.h264, bitrate: .kilobitsPerSecond(100), framesPerSecond: 5))
        let audio = bot.publish(AudioPlan(packetDuration: .milliseconds(60)))
        world.run(for: .seconds(20))
        let view = listener.subscribe(to: screen)
        let before = bot.traffic
        // They take turns in being loud, so that speakers change all the time.
        world.repeat(every: .seconds(3), count: 190) { turn in
            for (index, microphone) in microphones.enumerated() {
                microphone.audio?.level = index == turn % microphones.count ? 20 : 90
            }
        }
        world.run(for: .seconds(600))
        #expect(bot.traffic.rtpPackets == 0)
        let kilobits = Double(8 * (bot.traffic.rtcpBytes - before.rtcpBytes)) / 600_000
        print("control to the broadcaster: \(kilobits) kbit/s in \(bot.traffic.rtcpDatagrams) datagrams")
        #expect(kilobits <= 5)
        let own = Set((screen.streams + audio.streams).flatMap { [$0.ssrc, $0.rtxSSRC ?? 0] })
        #expect(bot.reportedSSRCs.isSubset(of: own), "foreign: \(bot.reportedSSRCs.subtracting(own))")
        let statistics = try #require(world.statistics(of: room))
        let peer = try #require(statistics.peers.first { $0.peer == bot.id })
        #expect(peer.downlinkStateBytes == 0 && peer.rtpPacketsSent == 0)
        #expect(view.frames.decoded > 2_500)
        #expect(world.faults == [])
    }

    @Test("B18, F4: a killed client is reported within the consent timeout; a new participant is served meanwhile")
    func ghost() throws {
        let world = try World(seed: Seeds.seed(52))
        let room = world.openRoom()
        let bot = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)), profile: .publishOnly))
        let viewer = world.join(room)
        let view = viewer.subscribe(to: bot.publish(.camera(framesPerSecond: 10)))
        world.run(for: .seconds(5))
        #expect(view.frames.decoded > 20)
        bot.kill()
        let death = world.now
        world.run(for: .seconds(2))
        let again = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)), profile: .publishOnly))
        let second = viewer.subscribe(to: again.publish(.camera(framesPerSecond: 10)))
        world.run(for: .seconds(30))
        let ends = world.times { $0 == .peerEnded(bot.id, .consentExpired) }
        let end = try #require(ends.first)
        print("removed after \((end - death).milliseconds) ms")
        #expect(ends.count == 1)
        // 15 s by default. What was on its way at the kill, 10 ms long, is the last sign of life.
        #expect(end - death >= .seconds(5) && end - death <= .seconds(15) + .milliseconds(100))
        #expect(world.workers[0].statistics.peers == 2 && world.workers[0].statistics.tracks == 1)
        #expect(second.frames.decoded > 200)
        #expect(world.faults == [])
    }

    @Test("B17: close_notify is reported once and frees everything at once")
    func goodbye() throws {
        let world = try World(seed: Seeds.seed(53))
        let room = world.openRoom()
        let bot = world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10)), profile: .publishOnly))
        _ = bot.publish(.camera())
        world.run(for: .seconds(2))
        let moment = world.now
        bot.hangUp()
        world.run(for: .milliseconds(200))
        let ends = world.times { $0 == .peerEnded(bot.id, .closedByPeer) }
        #expect(ends.count == 1 && ends[0] - moment <= .milliseconds(50))
        #expect(world.workers[0].statistics.peers == 0 && world.workers[0].statistics.tracks == 0)
    }

    @Test("B21: network change and ICE restart of the publisher: at most 1.5 s without video, the same SSRCs")
    func publisherMoves() throws {
        let outage = try Self.move(seed: Seeds.seed(54)) { alice, _ in alice }
        #expect(outage <= .milliseconds(1_500))
    }

    @Test("B21: network change and ICE restart of the subscriber: at most 1.5 s without video, the same SSRCs")
    func viewerMoves() throws {
        let outage = try Self.move(seed: Seeds.seed(55)) { _, bob in bob }
        #expect(outage <= .milliseconds(1_500))
    }

    /// One of two moves to another network and restarts ICE once it has noticed; the time without pictures.
    private static func move(
        seed: UInt64, who: (VirtualClient, VirtualClient) -> VirtualClient
    ) throws -> TimeSpan {
        let world = try World(seed: seed)
        let room = world.openRoom()
        let link = LinkModel(delay: .milliseconds(30))
        let alice = world.join(room, ClientSettings(link: link)), bob = world.join(room, ClientSettings(link: link))
        let camera = alice.publish(.camera(framesPerSecond: 15)), microphone = alice.publish()
        let view = bob.subscribe(to: camera), audio = bob.subscribe(to: microphone)
        world.run(for: .seconds(5))
        view.resetGap(at: world.now)
        audio.resetGap(at: world.now)
        let mover = who(alice, bob)
        mover.switchNetwork()
        world.plan(in: .milliseconds(300)) { mover.restartICE(signalling: .milliseconds(100)) }
        world.run(for: .seconds(5))
        print("outage \(view.longestGap.milliseconds) ms of video, \(audio.longestGap.milliseconds) ms of audio")
        #expect(world.faults == [])
        #expect(world.workers[0].statistics.peers == 2)
        #expect(world.times { if case .peerEnded = $0 { true } else { false } }.isEmpty)
        #expect(view.lastArrival.map { world.now - $0 < .milliseconds(200) } == true)
        #expect(view.frames.lastTime.map { world.now - $0 < .milliseconds(200) } == true)
        return max(view.longestGap, audio.longestGap)
    }
}

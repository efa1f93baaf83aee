import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Audio of phones and apps")
struct AudioTests {
    /// A speaker and a listener on perfect wires, connected.
    struct Call {
        let world: World
        let alice: VirtualClient
        let bob: VirtualClient
        let microphone: Publication
        let view: View
        let room: RoomID

        init(_ plan: AudioPlan = .init(), seed: UInt64, link: LinkModel = LinkModel()) throws {
            world = try World(seed: seed)
            room = world.openRoom()
            alice = world.join(room, ClientSettings(link: link))
            bob = world.join(room, ClientSettings(link: link))
            world.run(for: .seconds(1))
            microphone = alice.publish(plan)
            view = bob.subscribe(to: microphone)
            view.keepsDelays = true
        }

        /// Everything that was sent has arrived, once and in order.
        func expectAll() {
            #expect(world.faults == [])
            #expect(view.packets == microphone.frames())
            #expect(view.duplicates == 0 && view.missing == 0 && view.checker.missing == 0)
        }
    }

    @Test("A4: audio packets of 10, 20, 40, 60 and 120 ms in one stream: none lost, the level stays correct")
    func durations() throws {
        let call = try Call(seed: Seeds.seed(31))
        for milliseconds in [20, 10, 40, 60, 120, 20, 120, 10] {
            call.microphone.audio?.packetDuration = .milliseconds(Int64(milliseconds))
            call.world.run(for: .seconds(2))
        }
        call.expectAll()
        let statistics = try #require(call.world.statistics(of: call.room))
        #expect(statistics.tracks[0].layers[0].packetsLost == 0)
        #expect(abs(statistics.tracks[0].loudness - 97) <= 2)
        #expect(call.world.times { if case .trackSilent = $0 { true } else { false } }.isEmpty)
    }

    @Test(
        "A5: the media clock jumps by any step: sequence numbers continue, no other SSRC, no keyframe request, nothing ends"
    )
    func clockJumps() throws {
        let call = try Call(seed: Seeds.seed(32))
        call.view.checker.paceTolerance = nil
        for step: UInt32 in [48_000, 0x7000_0000, 0xffff_0000, 960_000, 0x9000_0000, 1] {
            call.world.run(for: .seconds(1))
            call.microphone.jump(by: step)
        }
        call.world.run(for: .seconds(1))
        call.expectAll()
        #expect(call.microphone.keyframeRequests.isEmpty)
        #expect(call.world.times { if case .trackSilent = $0 { true } else { false } }.isEmpty)
    }

    @Test(
        "A6, F7: silence of 5, 30 and 120 s with a sequence number wrap inside: audio resumes at once",
        arguments: [5, 30, 120])
    func interruption(seconds: Int64) throws {
        let call = try Call(seed: Seeds.seed(33), link: LinkModel(delay: .milliseconds(2)))
        call.microphone.streams[0].sequence = 65_500 - 100
        call.world.run(for: .seconds(2))
        call.microphone.isSending = false
        call.world.run(for: .seconds(seconds))
        // The phone's encoder went on while its packets did not.
        #expect(call.microphone.streams[0].sequence > 65_000 || seconds == 0)
        call.microphone.streams[0].sequence &+= 500
        let silent = call.world.times { $0 == .trackSilent(call.microphone.id) }
        #expect(silent.count == 1)
        call.view.resetGap(at: call.world.now)
        call.alice.resume(call.microphone)
        let before = call.view.packets
        call.world.run(for: .milliseconds(20))
        #expect(call.view.packets > before, "the first packet took more than 20 ms")
        call.world.run(for: .seconds(2))
        #expect(call.view.packets >= call.microphone.frames() - 1 && call.view.missing == 0)
        #expect(call.world.times { $0 == .trackResumed(call.microphone.id) }.count == 1)
        #expect(call.world.workers[0].statistics.peers == 2)
        #expect(call.world.workers[0].statistics.drops[.srtpAuthentication] == 0)
        #expect(call.world.faults == [])
    }

    @Test(
        "G7: Opus with DTX, a packet every 400 ms during silence: all forwarded at once, and the track is never reported silent"
    )
    func discontinuousTransmission() throws {
        let call = try Call(seed: Seeds.seed(37), link: LinkModel(delay: .milliseconds(5)))
        for _ in 0..<5 {
            call.microphone.audio?.pause = .zero
            call.world.run(for: .seconds(2))
            call.microphone.audio?.pause = .milliseconds(380)
            call.world.run(for: .seconds(10))
        }
        call.expectAll()
        #expect(call.view.delays.max().map { $0 <= .milliseconds(15) } == true)
        let statistics = try #require(call.world.statistics(of: call.room))
        #expect(statistics.tracks[0].layers[0].packetsLost == 0)
        #expect(call.world.times { if case .trackSilent = $0 { true } else { false } }.isEmpty)
    }

    @Test(
        "Timestamps that jump by 500 ms while sequence numbers continue, alone or in bursts after a silence: nothing is lost",
        arguments: [false, true])
    func leaps(inBursts: Bool) throws {
        var plan = AudioPlan()
        plan.payloadBytes = 240
        let call = try Call(plan, seed: Seeds.seed(38))
        call.view.checker.paceTolerance = nil
        let drops = call.world.workers[0].statistics.drops.total
        for round in 0..<12 {
            call.microphone.audio?.callbacks = []
            call.microphone.audio?.pause = .milliseconds(380)
            // Each time from another place of the server's memory.
            call.world.run(for: .milliseconds(4_000 + 400 * Int64(round)))
            call.microphone.audio?.pause = .zero
            if inBursts { call.microphone.audio?.callbacks = [.seconds(1)] }
            for _ in 0..<100 {
                call.microphone.jump(by: 24_000)
                call.world.run(for: .milliseconds(20))
            }
        }
        call.expectAll()
        #expect(call.world.workers[0].statistics.drops.total == drops)
    }

    @Test("A7: one participant alone in a room for ten minutes stays connected")
    func alone() throws {
        let world = try World(seed: Seeds.seed(34))
        let client = world.join(world.openRoom())
        world.run(for: .seconds(600))
        #expect(client.isConnected && !client.transport.hasEnded)
        #expect(world.workers[0].statistics.peers == 1)
        #expect(world.times { if case .peerEnded = $0 { true } else { false } }.isEmpty)
    }

    @Test(
        "B10: app audio in bursts of 512.3 ms: all forwarded in order within 5 ms, feedback complete, speakers steady")
    func bursts() throws {
        var plan = AudioPlan()
        plan.callbacks = [.microseconds(512_300)]
        let call = try Call(plan, seed: Seeds.seed(35))
        // The media clock runs on through a burst.
        call.view.checker.paceTolerance = .milliseconds(600)
        var order: [UInt32] = []
        call.view.onPacket = { trace, _, _ in order.append(trace?.frame ?? 0) }
        call.world.run(for: .seconds(60))
        call.expectAll()
        #expect(order == order.sorted())
        #expect(call.view.delays.max().map { $0 <= .milliseconds(5) } == true)
        #expect(call.alice.feedbackLost == 0)
        #expect(call.alice.feedbackReported >= call.microphone.frames() - 26)
        let statistics = try #require(call.world.statistics(of: call.room))
        print("jitter \(statistics.tracks[0].layers[0].jitterMilliseconds) ms")
        #expect(statistics.tracks[0].layers[0].jitterMilliseconds > 10)
        let changes = call.world.times { if case .speakersChanged = $0 { true } else { false } }
        #expect(changes.count <= 3, "\(changes.count) changes of speakers")
        #expect(call.world.times { if case .dominantSpeakerChanged = $0 { true } else { false } }.count <= 1)
    }

    @Test("B11: callbacks of 23.2 ms: at most 1 ms of jitter added at p99")
    func callbacks() throws {
        var plan = AudioPlan()
        plan.callbacks = [.microseconds(23_200), .microseconds(23_200), .microseconds(13_600)]
        let call = try Call(plan, seed: Seeds.seed(36), link: LinkModel(delay: .milliseconds(10)))
        call.world.run(for: .seconds(30))
        let delays = call.view.delays.sorted()
        let spread = delays[delays.count * 99 / 100] - delays[0]
        print("added jitter p99 \(spread.microseconds) us")
        #expect(spread <= .milliseconds(1))
        #expect(call.world.faults == [])
    }
}

import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Only the loudest microphones")
struct LoudestTests {
    static let voice: UInt8 = 30
    static let background: UInt8 = 90

    /// A meeting of people with open microphones, and one who listens to all of them.
    private final class Meeting {
        let world: World
        let room: RoomID
        let speakers: [VirtualClient]
        let microphones: [Publication]
        let listener: VirtualClient
        let views: [View]
        /// When each person's packets were sent that came in time, by person.
        var heard: [[MonotonicTime]]

        init(
            people: Int, loudest: Int?, threshold: Int = RoomAudio().microphoneThreshold,
            packet: TimeSpan = .milliseconds(20), seed: UInt64
        ) throws {
            world = try World(seed: seed)
            room = world.openRoom()
            if let loudest {
                var audio = RoomAudio()
                (audio.maximumMicrophones, audio.microphoneThreshold) = (loudest, threshold)
                world.apply(.setRoomAudio(room, audio))
            }
            speakers = (0..<people).map { [world, room] _ in world.join(room, ClientSettings()) }
            listener = world.join(room, ClientSettings())
            world.run(for: .seconds(1))
            var plan = AudioPlan(packetDuration: packet)
            plan.level = LoudestTests.background
            microphones = speakers.map { $0.publish(plan) }
            views = microphones.map { [listener] in listener.subscribe(to: $0) }
            heard = Array(repeating: [], count: people)
            for (person, view) in views.enumerated() {
                // Somebody who is withheld and comes back leaves a pause in the stream.
                view.checker.paceTolerance = nil
                view.onPacket = { [unowned self] trace, _, _ in
                    if let trace { heard[person].append(trace.time) }
                }
            }
            world.run(for: .seconds(2))
        }

        func speak(_ person: Int) { microphones[person].audio?.level = LoudestTests.voice }
        func fallSilent(_ person: Int) { microphones[person].audio?.level = LoudestTests.background }

        /// Who was heard in the last `interval`.
        func audible(for interval: TimeSpan) -> [Int] {
            let before = views.map(\.packets)
            world.run(for: interval)
            return views.indices.filter { views[$0].packets > before[$0] }
        }
    }

    @Test(
        "G9: of many open microphones a subscriber is sent as many as the rule says, and all of them without it",
        arguments: [(12, 3), (12, nil), (100, 6)] as [(Int, Int?)])
    func count(people: Int, loudest: Int?) throws {
        let meeting = try Meeting(people: people, loudest: loudest, seed: Seeds.seed(71))
        #expect(meeting.audible(for: .seconds(2)).count == loudest ?? people)
        #expect(meeting.world.faults == [])
    }

    @Test(
        "G9: whoever begins to speak is heard within 100 ms, and its first word from the first packet on",
        arguments: [20, 60])
    func firstWord(milliseconds: Int64) throws {
        let meeting = try Meeting(
            people: 12, loudest: 3, packet: .milliseconds(milliseconds), seed: Seeds.seed(72))
        for person in [11, 0, 7, 3, 9, 5] {
            let start = meeting.world.now
            meeting.speak(person)
            meeting.world.run(for: .milliseconds(100 + milliseconds))
            let words = meeting.heard[person].filter { $0 >= start }
            // A packet is sent when its audio is complete.
            let first = try #require(words.first, "person \(person) was not heard in time")
            #expect(first - start <= .milliseconds(milliseconds), "person \(person)'s first word was clipped")
            meeting.world.run(for: .seconds(1))
            meeting.fallSilent(person)
            meeting.world.run(for: .seconds(1))
        }
        #expect(meeting.world.faults == [])
        #expect(meeting.views.allSatisfy { $0.missing == 0 && $0.duplicates == 0 })
    }

    @Test("G9: of five who speak at once the loudest three are heard, and do not take turns")
    func loudest() throws {
        let meeting = try Meeting(people: 8, loudest: 3, seed: Seeds.seed(73))
        for (person, level) in [(0, 50), (1, 30), (2, 48), (3, 28), (4, 32)] {
            meeting.microphones[person].audio?.level = UInt8(level)
        }
        meeting.world.run(for: .seconds(2))
        let switches = meeting.world.workers[0].statistics.microphoneSwitches
        #expect(meeting.audible(for: .seconds(10)) == [1, 3, 4])
        #expect(meeting.world.workers[0].statistics.microphoneSwitches == switches)
    }

    @Test("G9: a click of 20 ms takes nobody's place")
    func click() throws {
        let meeting = try Meeting(people: 8, loudest: 2, seed: Seeds.seed(74))
        let audible = meeting.audible(for: .seconds(1))
        let other = try #require((0..<8).first { !audible.contains($0) })
        for _ in 0..<10 {
            meeting.speak(other)
            meeting.world.run(for: .milliseconds(20))
            meeting.fallSilent(other)
            #expect(meeting.audible(for: .milliseconds(500)) == audible)
        }
    }

    @Test(
        "G9: noise below the room's threshold makes nobody take turns, and a voice below it takes no place",
        arguments: [(-60, false, true), (-80, true, true), (-40, false, false)] as [(Int, Bool, Bool)])
    func threshold(_ threshold: Int, noiseTakesTurns: Bool, voiceIsHeard: Bool) throws {
        let meeting = try Meeting(people: 6, loudest: 2, threshold: threshold, seed: Seeds.seed(77))
        let switches = meeting.world.workers[0].statistics.microphoneSwitches
        for round in 0..<24 {
            // Rustling of -65 dBov in one microphone after the other, far above their background.
            meeting.microphones[round % 6].audio?.level = 65
            meeting.world.run(for: .milliseconds(200))
            meeting.fallSilent(round % 6)
            meeting.world.run(for: .milliseconds(100))
        }
        #expect((meeting.world.workers[0].statistics.microphoneSwitches > switches) == noiseTakesTurns)
        let audible = meeting.audible(for: .seconds(1))
        let other = try #require((0..<6).first { !audible.contains($0) })
        meeting.microphones[other].audio?.level = 50
        meeting.world.run(for: .milliseconds(500))
        #expect(meeting.audible(for: .milliseconds(500)).contains(other) == voiceIsHeard)
        #expect(meeting.world.faults == [])
    }

    @Test("G9: who is pinned by a subscriber or always heard is forwarded beside the loudest, and no longer afterwards")
    func pins() throws {
        let meeting = try Meeting(people: 8, loudest: 2, seed: Seeds.seed(75))
        let loudest = meeting.audible(for: .seconds(1))
        let others = (0..<8).filter { !loudest.contains($0) }
        meeting.listener.setDisplay(of: meeting.views[others[0]]) { $0.isPinned = true }
        meeting.world.apply(.setTrackAlwaysForwarded(meeting.microphones[others[1]].id, true))
        meeting.world.run(for: .milliseconds(100))
        #expect(meeting.audible(for: .seconds(1)) == (loudest + others[0...1]).sorted())
        meeting.listener.setDisplay(of: meeting.views[others[0]]) { $0.isPinned = false }
        meeting.world.apply(.setTrackAlwaysForwarded(meeting.microphones[others[1]].id, false))
        meeting.world.run(for: .milliseconds(100))
        #expect(meeting.audible(for: .seconds(1)) == loudest)
        #expect(meeting.world.faults == [])
    }

    @Test(
        "G9: the rule can be made, changed and taken away during a call; a place is free when its holder mutes or leaves"
    )
    func changes() throws {
        let meeting = try Meeting(people: 6, loudest: nil, seed: Seeds.seed(76))
        var audio = RoomAudio()
        for limit in [2, 4, nil, 1] {
            audio.maximumMicrophones = limit
            meeting.world.apply(.setRoomAudio(meeting.room, audio))
            meeting.world.run(for: .milliseconds(100))
            #expect(meeting.audible(for: .seconds(1)).count == limit ?? 6)
        }
        for _ in 0..<5 {
            let audible = meeting.audible(for: .seconds(1))
            #expect(audible.count == 1)
            meeting.world.apply(.setTrackMuted(meeting.microphones[audible[0]].id, true))
        }
        #expect(meeting.world.faults == [])
    }
}

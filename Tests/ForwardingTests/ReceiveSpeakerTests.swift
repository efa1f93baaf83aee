import MediaControl
import Primitives
import Testing

@testable import Forwarding

@Suite("Receive: audio levels and speakers")
struct ReceiveSpeakerTests {
    /// People with microphones, fed by scripts of loudness over time.
    private final class Meeting {
        let detector = SpeakerDetector(room: RoomID(1))
        var tracks: [PublishedTrack] = []
        var events: [(at: Double, event: MediaEvent)] = []
        private var random = RandomSource(seed: 7)

        init(people: Int) {
            for index in 0..<people {
                let track = PublishedTrack(description: .microphone(id: UInt64(index + 1)), at: at(0))
                tracks.append(track)
                detector.add(track, at: at(0))
            }
        }

        /// Runs from `start` to `end` ms; `loudness(person, time)` is asked every 20 ms; nil sends nothing.
        func run(
            from start: Double, to end: Double, burst: (person: Int, every: Double)? = nil,
            _ loudness: (Int, Double) -> Int?
        ) {
            var queue: [(Int, Int)] = []
            for tick in Int(start / 20)..<Int(end / 20) {
                let time = Double(tick) * 20
                for person in tracks.indices {
                    guard let level = loudness(person, time) else { continue }
                    // Voices are never steady.
                    let shaken = max(0, min(127, level + Int(random.next() % 7) - 3))
                    if let burst, burst.person == person {
                        queue.append((tick, shaken))
                        continue
                    }
                    give(person, tick, shaken, at: time)
                }
                if let burst, Int(time) % Int(burst.every) < 20 {
                    for (tick, level) in queue { give(burst.person, tick, level, at: time) }
                    queue.removeAll()
                }
                advance(to: time)
            }
        }

        func give(_ person: Int, _ tick: Int, _ loudness: Int, at time: Double) {
            tracks[person].levels.receive(
                level: UInt8(127 - loudness), timestamp: Int64(tick) * 960, clockRate: 48_000, at: at(time))
        }

        func advance(to time: Double) {
            detector.advance(to: at(time))
            events += detector.consumeEvents().map { (time, $0) }
        }

        var dominants: [(at: Double, track: UInt64?)] {
            events.compactMap { item in
                if case .dominantSpeakerChanged(_, let track) = item.event { (item.at, track?.rawValue) } else { nil }
            }
        }

        var lists: [(at: Double, tracks: [UInt64])] {
            events.compactMap { item in
                if case .speakersChanged(_, let list) = item.event {
                    (item.at, list.map(\.track.rawValue))
                } else {
                    nil
                }
            }
        }
    }

    private static let voice = 100
    private static let background = 45

    @Test("G9: a speaker becomes dominant within a second, and so does the next one")
    func takesOver() {
        let meeting = Meeting(people: 4)
        meeting.run(from: 0, to: 2000) { _, _ in Self.background }
        #expect(meeting.dominants.isEmpty, "background is no speech")
        meeting.run(from: 2000, to: 8000) { person, _ in person == 1 ? Self.voice : Self.background }
        meeting.run(from: 8000, to: 14_000) { person, _ in person == 3 ? Self.voice : Self.background }
        #expect(meeting.dominants.map(\.track) == [2, 4])
        #expect(meeting.dominants[0].at < 3000)
        #expect(meeting.dominants[1].at > 8000 && meeting.dominants[1].at < 9000)
    }

    @Test("Who mutes while speaking is no speaker any more within a second, and is one again after it")
    func mutedSpeaker() throws {
        let meeting = Meeting(people: 2)
        meeting.run(from: 0, to: 3000) { person, _ in person == 0 ? Self.voice : Self.background }
        #expect(meeting.lists.last?.tracks == [1])
        meeting.tracks[0].setMuted(true)
        meeting.run(from: 3000, to: 6000) { person, _ in person == 0 ? nil : Self.background }
        let last = try #require(meeting.lists.last)
        #expect(last.tracks == [] && last.at <= 4000)
        #expect(meeting.detector.loudness(of: TrackID(1)) == 0)
        meeting.tracks[0].setMuted(false)
        meeting.run(from: 6000, to: 8000) { person, _ in person == 0 ? Self.voice : Self.background }
        #expect(meeting.lists.last?.tracks == [1])
    }

    @Test("G9: coughs and key strokes of others do not change the dominant speaker")
    func shortNoise() {
        let meeting = Meeting(people: 3)
        meeting.run(from: 0, to: 20_000) { person, time in
            if person == 0 { return Int(time) % 1000 < 800 ? Self.voice : Self.background }
            // Loud clicks of 60 ms, every second and a half.
            return Int(time) % 1500 < 60 ? 120 : Self.background
        }
        #expect(meeting.dominants.map(\.track) == [1])
    }

    @Test("G9: two who speak at once for half a minute are dominant in turn sixteen times at most, once in two seconds")
    func together() {
        let meeting = Meeting(people: 2)
        meeting.run(from: 0, to: 3000) { person, _ in person == 0 ? Self.voice : Self.background }
        // Words and pauses of both overlap for half a minute.
        meeting.run(from: 3000, to: 33_000) { person, time in
            let phase = Int(time) + person * 370
            return phase % 1100 < 850 ? Self.voice : Self.background
        }
        #expect(meeting.dominants.count <= 16, "\(meeting.dominants.count) changes in 30 s")
        #expect(meeting.dominants.first?.track == 1)
    }

    @Test("B10: a speaker whose audio arrives in bursts of half a second neither flaps nor leaves the list")
    func bursts() {
        let meeting = Meeting(people: 2)
        meeting.run(from: 0, to: 30_000, burst: (person: 0, every: 512)) { person, _ in
            person == 0 ? Self.voice : Self.background
        }
        #expect(meeting.dominants.map(\.track) == [1])
        #expect(meeting.lists.filter { $0.at > 2500 && $0.tracks != [1] }.isEmpty, "\(meeting.lists)")
    }

    @Test("The list contains the active speakers, loudest first, with hysteresis, and empties")
    func list() {
        let meeting = Meeting(people: 3)
        meeting.run(from: 0, to: 5000) { person, time in
            [Self.voice + 20, Self.voice, Self.background][person] - (Int(time) % 500 < 120 ? 60 : 0)
        }
        #expect(meeting.lists.last?.tracks == [1, 2])
        #expect(meeting.lists.count <= 4, "\(meeting.lists)")
        meeting.run(from: 5000, to: 10_000) { _, _ in Self.background }
        #expect(meeting.lists.last?.tracks == [])
        #expect(meeting.lists.last!.at < 7000)
    }

    @Test(
        "A voice is listed where it is above the room's threshold, and not where it is below",
        arguments: [(-50, [1, 2]), (-30, [1]), (-80, [1, 2, 3])] as [(Int, [UInt64])])
    func threshold(_ threshold: Int, listed: [UInt64]) {
        let meeting = Meeting(people: 3)
        var audio = RoomAudio()
        audio.voiceThreshold = threshold
        meeting.detector.configure(audio)
        // -17, -42 and -67 dBov, each within 3 dB.
        meeting.run(from: 0, to: 4000) { person, _ in [110, 85, 60][person] }
        #expect(meeting.lists.last?.tracks == listed)
    }

    @Test(
        "No more speakers are listed than the room says, the loudest of them",
        arguments: [(0, nil), (1, [3]), (2, [3, 2]), (50, [3, 2, 1])] as [(Int, [UInt64]?)])
    func mostSpeakers(_ most: Int, listed: [UInt64]?) {
        let meeting = Meeting(people: 3)
        var audio = RoomAudio()
        audio.maximumSpeakers = most
        meeting.detector.configure(audio)
        meeting.run(from: 0, to: 4000) { person, _ in [85, 100, 118][person] }
        #expect(meeting.lists.last?.tracks == listed)
        #expect(meeting.lists.allSatisfy { $0.tracks.count <= most })
    }

    @Test("After half a minute of silence there is no dominant speaker; neither is a removed track")
    func forgets() {
        let meeting = Meeting(people: 2)
        meeting.run(from: 0, to: 3000) { person, _ in person == 0 ? Self.voice : nil }
        #expect(meeting.detector.dominant == TrackID(1))
        meeting.run(from: 3000, to: 40_000) { _, _ in nil }
        #expect(meeting.detector.dominant == nil)
        #expect(meeting.dominants.last!.at > 30_000)
        meeting.run(from: 40_000, to: 42_000) { person, _ in person == 1 ? Self.voice : nil }
        #expect(meeting.detector.dominant == TrackID(2))
        meeting.detector.remove(TrackID(2))
        #expect(meeting.detector.dominant == nil)
    }

    @Test("A4: the level window is correct for every packet time", arguments: [10, 20, 40, 60, 120])
    func packetSizes(milliseconds: Int) {
        var window = AudioLevelWindow()
        var time = 0
        // 500 ms loud, 500 ms quiet.
        while time < 1000 {
            window.receive(
                level: time < 500 ? 20 : 90, timestamp: Int64(time) * 48, clockRate: 48_000, at: at(Double(time)))
            time += milliseconds
        }
        let loud = (0..<AudioLevelWindow.slots).filter { window.loudness($0) == 107 }.count
        let quiet = (0..<AudioLevelWindow.slots).filter { window.loudness($0) == 37 }.count
        // The last packet's length is not known before the next one; and 60 and 120 ms do not divide the second.
        #expect(abs(loud - 25) <= milliseconds / 20 + 1)
        #expect(abs(quiet - 25) <= milliseconds / 20 + 1)
    }

    @Test("A5: a timestamp step neither empties nor corrupts the level window")
    func timestampStep() {
        var window = AudioLevelWindow()
        for tick in 0..<30 {
            window.receive(
                level: 20, timestamp: Int64(tick) * 960 + (tick < 15 ? 0 : 5_000_000), clockRate: 48_000,
                at: at(Double(tick) * 20))
        }
        #expect((0..<30).allSatisfy { window.loudness($0) == 107 })
    }

    @Test("DTX and silence empty the level window; late packets do not")
    func silence() {
        var window = AudioLevelWindow()
        for tick in 0..<50 {
            window.receive(level: 20, timestamp: Int64(tick) * 960, clockRate: 48_000, at: at(Double(tick) * 20))
        }
        window.settle(at: at(1050))
        #expect(window.loudness(0) == 107)
        window.settle(at: at(1400))
        #expect(window.loudness(0) == 0 && window.loudness(20) == 107)
        // The packets were late, not silent: the speaker did not stop.
        for tick in 50..<70 {
            window.receive(level: 20, timestamp: Int64(tick) * 960, clockRate: 48_000, at: at(1401))
        }
        #expect((0..<20).allSatisfy { window.loudness($0) == 107 })
        #expect((20..<35).allSatisfy { window.loudness($0) == 107 })
    }

    @Test("The scores of Volfin and Cohen rise with speech in each interval, and are lowest for silence")
    func scores() {
        #expect(SpeechActivity(AudioLevelWindow()).long == SpeechActivity.least)
        var window = AudioLevelWindow()
        for tick in 0..<50 { window.receive(level: 80, timestamp: Int64(tick) * 960, clockRate: 48_000, at: at(0)) }
        var last = SpeechActivity(window)
        for tick in 50..<100 {
            window.receive(level: 10, timestamp: Int64(tick) * 960, clockRate: 48_000, at: at(0))
            let now = SpeechActivity(window)
            #expect(now.medium >= last.medium && now.long >= last.long)
            last = now
        }
        let lead = last.relative(to: .silence)
        #expect(lead.immediate > 3 && lead.medium > 2 && lead.long > 0)
    }
}

import MP4
import Primitives
import Testing

@testable import Playback

@Suite("Schedule of a playback")
struct PlaybackScheduleTests {
    private static let start = MonotonicTime(milliseconds: 10_000)

    /// Two seconds of video at `rate` with a keyframe a second, and of audio in packets of 20 ms.
    private static func tracks(rate: Int) throws -> [PlayableTrack] {
        [
            try playable(
                .vp8(size), lengths: Array(repeating: 10, count: 2 * rate), duration: UInt32(90_000 / rate),
                syncEvery: rate),
            try playable(.opus, lengths: Array(repeating: 5, count: 100), duration: 960),
        ]
    }

    /// What is handed out up to `end`, asked every 20 ms with 200 ms ahead.
    private static func run(
        _ schedule: inout PlaybackSchedule, from: MonotonicTime, to end: MonotonicTime
    ) -> [PlaybackSchedule.Step] {
        var steps: [PlaybackSchedule.Step] = []
        var now = from
        while now < end {
            while let step = schedule.next(upTo: now + .milliseconds(200), at: now) { steps.append(step) }
            now = now + .milliseconds(20)
        }
        return steps
    }

    @Test("Every sample once, in its time, and then the end", arguments: [24, 30, 60])
    func whole(rate: Int) throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: rate), loops: false, at: Self.start)
        #expect(schedule.duration == .seconds(2))
        let steps = Self.run(&schedule, from: Self.start, to: Self.start + .seconds(4))
        let video = steps.filter { $0.track == 0 }, audio = steps.filter { $0.track == 1 }
        #expect(video.map(\.sample) == Array(0..<(2 * rate)) && audio.map(\.sample) == Array(0..<100))
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.due <= $1.due })
        for (index, step) in video.enumerated() {
            let ideal = Self.start + PlaybackSchedule.lead + .nanoseconds(Int64(index) * 1_000_000_000 / Int64(rate))
            #expect(abs((step.due - ideal).nanoseconds) < 1_000)
            #expect(step.timestamp &- video[0].timestamp == UInt32(index * 90_000 / rate))
            #expect(step.spread <= .milliseconds(20))
        }
        #expect(audio.enumerated().allSatisfy { $1.timestamp &- audio[0].timestamp == UInt32($0 * 960) })
        guard case .ended = schedule.state else {
            Issue.record("it has not ended")
            return
        }
        #expect(schedule.position(at: Self.start + .seconds(9)) == .seconds(2))
    }

    /// Three frames of five seconds.
    private static func slideshow() throws -> PlaybackSchedule {
        let track = try playable(.vp8(size), lengths: [10, 10, 10], duration: 450_000)
        return PlaybackSchedule([track], loops: false, at: start)
    }

    @Test("The last frame of a slideshow is shown for as long as the others, and the position goes on meanwhile")
    func lastFrame() throws {
        var schedule = try Self.slideshow()
        let end = Self.start + PlaybackSchedule.lead + .seconds(15)
        let shown = Self.run(&schedule, from: Self.start, to: Self.start + .seconds(14))
        #expect(shown.map(\.sample) == [0, 1, 2])
        #expect(schedule.state == .playing && schedule.position(at: end - .seconds(3)) == .seconds(12))
        let rest = Self.run(&schedule, from: Self.start + .seconds(14), to: Self.start + .seconds(15))
        #expect(rest.isEmpty && schedule.state == .ended(end))
        #expect(schedule.position(at: end - .milliseconds(100)) == .milliseconds(14_900))
    }

    @Test("While the last frame of a slideshow is shown, a seek goes back, and a loop begins where the frame ends")
    func changesInLastFrame() throws {
        let later = Self.start + .seconds(12)
        var schedule = try Self.slideshow()
        _ = Self.run(&schedule, from: Self.start, to: later)
        var looping = schedule
        schedule.seek(to: .seconds(6), at: later)
        let back = Self.run(&schedule, from: later, to: later + .seconds(8))
        #expect(back.map(\.sample) == [1, 2])
        looping.setLoops(true)
        let again = Self.run(&looping, from: later, to: Self.start + .seconds(16))
        #expect(again.map(\.sample) == [0])
        #expect(again.map(\.due) == [Self.start + PlaybackSchedule.lead + .seconds(15)])
    }

    @Test("A slideshow that was paused in its last frame shows it for the rest of its time", arguments: [false, true])
    func pausedInLastFrame(loops: Bool) throws {
        let pause = Self.start + .seconds(12), resume = Self.start + .seconds(60)
        let end = Self.start + PlaybackSchedule.lead + .seconds(15 + 48)
        var schedule = try Self.slideshow()
        _ = Self.run(&schedule, from: Self.start, to: pause)
        schedule.pause(at: pause)
        #expect(schedule.position(at: resume) == .seconds(12) - PlaybackSchedule.lead)
        schedule.setLoops(loops)
        schedule.resume(at: resume)
        let rest = Self.run(&schedule, from: resume, to: resume + .seconds(4))
        #expect(rest.map(\.due) == (loops ? [end] : []))
        #expect(schedule.state == (loops ? PlaybackSchedule.State.playing : .ended(end)))
    }

    @Test("A reader that asks for everything at once gets what is due within the horizon")
    func backPressure() throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 30), loops: false, at: Self.start)
        var count = 0
        while let step = schedule.next(upTo: Self.start + .milliseconds(200), at: Self.start) {
            count += 1
            #expect(step.due <= Self.start + .milliseconds(200))
        }
        // 160 ms behind the lead: five frames and nine packets of audio.
        #expect(count == 14)
    }

    @Test("A loop goes on without a jump in time or RTP time")
    func loop() throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 60), loops: true, at: Self.start)
        var steps = Self.run(&schedule, from: Self.start, to: Self.start + .seconds(5))
        schedule.setLoops(false)
        steps += Self.run(&schedule, from: Self.start + .seconds(5), to: Self.start + .seconds(8))
        for (track, gap, count) in [(0, 1_500, 360), (1, 960, 300)] {
            let own = steps.filter { $0.track == track }
            #expect(own.count == count, "three whole cycles")
            #expect(zip(own, own.dropFirst()).allSatisfy { $1.timestamp &- $0.timestamp == UInt32(gap) })
        }
        guard case .ended = schedule.state else {
            Issue.record("the last cycle does not end")
            return
        }
    }

    @Test("A pause is a jump in RTP time as long as on the clock, and nothing is left out")
    func pause() throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 30), loops: false, at: Self.start)
        let before = Self.run(&schedule, from: Self.start, to: Self.start + .milliseconds(500))
        schedule.pause(at: Self.start + .milliseconds(500))
        #expect(schedule.state == .paused)
        let still = Self.run(&schedule, from: Self.start + .milliseconds(500), to: Self.start + .seconds(3))
        #expect(still.isEmpty)
        let position = schedule.position(at: Self.start + .seconds(1))
        #expect(position == schedule.position(at: Self.start + .seconds(2)))
        schedule.resume(at: Self.start + .seconds(3))
        let after = Self.run(&schedule, from: Self.start + .seconds(3), to: Self.start + .seconds(6))
        #expect((before + after).filter { $0.track == 0 }.map(\.sample) == Array(0..<60))
        let last = try #require(before.last { $0.track == 0 }), first = try #require(after.first { $0.track == 0 })
        let elapsed = (first.due - last.due).nanoseconds * 9 / 100_000
        #expect(abs(Int64(first.timestamp &- last.timestamp) - elapsed) <= 1)
        #expect(first.due >= Self.start + .seconds(3))
    }

    @Test("A seek goes to the keyframe at or before, audio too", arguments: [0, 999, 1_000, 1_700, 9_999])
    func seek(milliseconds: Int) throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 30), loops: false, at: Self.start)
        let before = Self.run(&schedule, from: Self.start, to: Self.start + .milliseconds(300))
        let now = Self.start + .milliseconds(300)
        schedule.seek(to: .milliseconds(Int64(milliseconds)), at: now)
        let after = Self.run(&schedule, from: now, to: now + .seconds(4))
        let video = try #require(after.first { $0.track == 0 }), audio = try #require(after.first { $0.track == 1 })
        let key = milliseconds < 1_000 ? 0 : 1
        #expect(video.sample == 30 * key && audio.sample == 50 * key)
        #expect(abs((video.due - audio.due).nanoseconds) < 1_000)
        let last = try #require(before.last)
        #expect(video.due > last.due && Int32(bitPattern: video.timestamp) > 0)
    }

    @Test("While it is paused a seek shows its place, and playing goes on from there")
    func seekPaused() throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 30), loops: false, isPaused: true, at: Self.start)
        #expect(schedule.position(at: Self.start) == .zero)
        schedule.seek(to: .milliseconds(1_400), at: Self.start + .seconds(1))
        #expect(schedule.state == .paused && schedule.position(at: Self.start + .seconds(2)) == .seconds(1))
        schedule.resume(at: Self.start + .seconds(5))
        let steps = Self.run(&schedule, from: Self.start + .seconds(5), to: Self.start + .seconds(8))
        #expect(steps.count { $0.track == 0 } == 30)
    }

    @Test("After a stall of the disk it goes on in its own time, not all at once")
    func stall() throws {
        var schedule = PlaybackSchedule(try Self.tracks(rate: 30), loops: false, at: Self.start)
        _ = Self.run(&schedule, from: Self.start, to: Self.start + .milliseconds(200))
        let later = Self.start + .seconds(3)
        var count = 0
        while schedule.next(upTo: later + .milliseconds(200), at: later) != nil { count += 1 }
        #expect(count < 20, "what is due within the horizon")
    }

    @Test(
        "The longest wait for a keyframe is that between two, or that from the last to the end",
        arguments: [(1, 3_000), (40, 120_000), (70, 210_000), (100, 270_000)] as [(Int, Int64)])
    func keyframes(every: Int, units: Int64) throws {
        let video = try playable(
            .vp8(size), lengths: [Int](repeating: 10, count: 90), duration: 3_000, syncEvery: every)
        #expect(video.longestKeyframeInterval == .units(units, per: 90_000))
        let audio = try playable(.opus, lengths: [5, 5], duration: 960, syncEvery: every)
        #expect(audio.longestKeyframeInterval == nil)
    }

    @Test("A later track begins that much later")
    func delay() throws {
        let video = try playable(.vp8(size), lengths: [10, 10], duration: 3_000)
        let audio = try playable(.opus, lengths: [5, 5], duration: 960, delay: .milliseconds(70))
        var schedule = PlaybackSchedule([video, audio], loops: false, at: Self.start)
        let steps = Self.run(&schedule, from: Self.start, to: Self.start + .seconds(1))
        let first = try #require(steps.first { $0.track == 0 }), second = try #require(steps.first { $0.track == 1 })
        #expect(second.due - first.due == .milliseconds(70))
    }
}

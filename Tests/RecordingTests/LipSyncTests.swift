import Primitives
import Testing

@testable import Recording

/// A publisher's media clock with an error in parts per million, and its sender reports.
private struct MediaClock {
    let rate: Double
    let error: Double
    let start: Double

    /// The RTP time of a moment in seconds since the recording began.
    func time(_ moment: Double) -> Int64 { Int64((start + moment * rate * (1 + error / 1e6)).rounded()) }

    func ntp(_ moment: Double, jitter: Double) -> UInt64 {
        let seconds = 3_900_000_000 + moment + jitter
        return UInt64(seconds) << 32 | UInt64((seconds - seconds.rounded(.down)) * 4_294_967_295)
    }
}

@Suite
struct LipSyncTests {
    @Test(
        "E10, E11: with clocks 400 ppm apart and jittered reports audio and video are aligned within 20 ms for two hours"
    )
    func twoHours() {
        let audio = MediaClock(rate: 48_000, error: 200, start: 1_000)
        let video = MediaClock(rate: 90_000, error: -200, start: 77_777)
        var audioFit = SenderClockFit(), videoFit = SenderClockFit()
        var random = RandomSource(seed: 7)
        func jitter() -> Double { Double(Int64(random.next() % 10_001) - 5_000) / 1e6 }
        var worst = 0.0
        // Audio reports every 5 s, video reports every second, each up to 5 ms off.
        for second in 0..<7_200 {
            let moment = Double(second)
            videoFit.add(time: video.time(moment), ntp: video.ntp(moment, jitter: jitter()))
            if second % 5 == 0 { audioFit.add(time: audio.time(moment), ntp: audio.ntp(moment, jitter: jitter())) }
            guard second >= 30, second % 10 == 9,
                let heard = audioFit.microseconds(at: audio.time(moment), clockRate: 48_000),
                let seen = videoFit.microseconds(at: video.time(moment), clockRate: 90_000)
            else { continue }
            worst = max(worst, abs(Double(heard - seen)) / 1_000)
        }
        #expect(worst > 0)
        #expect(worst <= 20, "\(worst) ms")
        // Without the reports the two would be 2.9 s apart.
        let heard = Double(audio.time(7_200) - audio.time(0)) / 48_000
        let seen = Double(video.time(7_200) - video.time(0)) / 90_000
        #expect(heard - seen > 2.8)
    }

    @Test("E11: a jump of the publisher's wall clock ends the window: the reports behind it count alone")
    func jump() {
        let audio = MediaClock(rate: 48_000, error: 0, start: 0)
        var fit = SenderClockFit()
        for second in 0..<30 {
            let moment = Double(second)
            fit.add(time: audio.time(moment), ntp: audio.ntp(moment, jitter: second < 20 ? 0 : -2))
        }
        let shown = fit.microseconds(at: audio.time(29), clockRate: 48_000) ?? 0
        #expect(abs(shown - (3_900_000_000 + 27) * 1_000_000) < 10)
        #expect(SenderClockFit().microseconds(at: 0, clockRate: 48_000) == nil)
    }

    @Test("E11: what the clock showed at a file's beginning stays within 5 ms, however long the file becomes")
    func startOfAnHour() {
        let audio = MediaClock(rate: 48_000, error: 100, start: 0)
        var random = RandomSource(seed: 3)
        var fit = SenderClockFit()
        var start = SenderClockStart(at: audio.time(0), clockRate: 48_000, after: fit)
        #expect(start.microseconds == nil)
        for second in stride(from: 2, to: 3_600, by: 5) {
            let moment = Double(second)
            // One millisecond of jitter, and a publisher whose wall clock is set after half an hour.
            let jitter = Double(Int64(random.next() % 2_001) - 1_000) / 1e6 + (second > 1_800 ? 3 : 0)
            let ntp = audio.ntp(moment, jitter: jitter)
            fit.add(time: audio.time(moment), ntp: ntp)
            _ = start.add(time: audio.time(moment), ntp: ntp)
        }
        let shown = start.microseconds ?? 0
        #expect(abs(shown - 3_900_000_000_000_000) < 5_000, "\(shown - 3_900_000_000_000_000) us off")
        let late = fit.microseconds(at: audio.time(0), clockRate: 48_000) ?? 0
        #expect(abs(late - 3_900_000_000_000_000) > 1_000_000, "the last reports know another clock")
        // A file that begins later has the reports before it.
        let second = SenderClockStart(at: audio.time(3_600), clockRate: 48_000, after: fit)
        #expect(abs((second.microseconds ?? 0) - 3_900_003_603_000_000) < 5_000)
    }
}

import Primitives
import TestSupport
import Testing

@testable import Recording

@Suite("Files of one participant on one timeline")
struct FileAlignmentTests {
    /// A media clock: so many units a second, off by `error` ppm; RTP time 0 is at `start` seconds.
    private struct Media {
        var rate: Double
        var error: Double
        var start: Double

        func time(_ moment: Double) -> Int64 { Int64(((moment - start) * rate * (1 + error / 1e6)).rounded()) }
        func moment(_ time: Int64) -> Double { start + Double(time) / (rate * (1 + error / 1e6)) }
    }

    private static func ntp(_ seconds: Double) -> UInt64 {
        let whole = seconds.rounded(.down)
        return UInt64(whole) << 32 | UInt64((seconds - whole) * 4_294_967_295)
    }

    /// A file of `media` from `begin` to `end`, with a report every `interval` seconds and jitter of `jitter` seconds. The publisher's clock is `step` off after `stepAt`.
    private func file(
        _ media: Media, stream: Int, isAudio: Bool, from begin: Double, to end: Double, interval: Double,
        jitter: () -> Double, arrival: Double? = nil, stepAt: Double = .infinity, step: Double = 0
    ) -> ClockedFile {
        var reports: [(time: Int64, ntp: UInt64)] = []
        var moment = begin + interval / 3
        while moment < end {
            let shown = 3_900_000_000 + moment + (moment >= stepAt ? step : 0) + jitter()
            reports.append((media.time(moment), Self.ntp(shown)))
            moment += interval
        }
        return ClockedFile(
            stream: stream, isAudio: isAudio, clockRate: Int(media.rate), rtpTime: media.time(begin),
            duration: media.time(end) - media.time(begin), arrival: Int64(((arrival ?? begin) * 1e6).rounded()),
            reports: reports)
    }

    /// The largest distance between when a frame is shown and when audio of the same moment is, in milliseconds, from `begin` on.
    private func worst(
        _ video: ClockedFile, _ media: Media, _ place: FilePlace, _ audio: ClockedFile, _ sound: Media,
        _ reference: FilePlace,
        from begin: Double
    ) -> Double {
        var worst = 0.0
        for time in stride(from: Int64(0), to: video.duration, by: 900_000) {
            let moment = media.moment(video.rtpTime + time)
            guard moment >= begin else { continue }
            let heard = reference.microseconds(at: sound.time(moment) - audio.rtpTime)
            worst = max(worst, abs(Double(place.microseconds(at: time) - heard)) / 1_000)
        }
        return worst
    }

    @Test(
        "E10, E11: within 20 ms over two hours in which the clocks of audio and video are 400 ppm apart, with jittered reports"
    )
    func twoHours() {
        var random = RandomSource(seed: 11)
        func jitter() -> Double { Double(Int64(random.next() % 4_001) - 2_000) / 1e6 }
        let sound = Media(rate: 48_000, error: 200, start: 0), media = Media(rate: 90_000, error: -200, start: -0.3)
        let audio = file(sound, stream: 1, isAudio: true, from: 0, to: 7_200, interval: 5, jitter: jitter)
        // The first keyframe had waited: its arrival says little.
        let video = file(
            media, stream: 0, isAudio: false, from: 0.2, to: 7_200, interval: 1, jitter: jitter, arrival: 0.9)
        let places = FileAlignment.places(of: [video, audio])
        let found = worst(video, media, places[0], audio, sound, places[1], from: 0)
        #expect(found < 20, "\(found) ms")
        #expect(places[1].microseconds(at: 48_000 * 7_200) == 7_200_000_000)
    }

    @Test(
        "Over three hours in files of an hour a video follows the audio that was recorded with it, also behind the first microphone",
        arguments: [false, true])
    func severalFiles(isOtherMicrophone: Bool) {
        let sound = Media(rate: 48_000, error: 100, start: 0), media = Media(rate: 90_000, error: 0, start: 0)
        var files: [ClockedFile] = []
        for hour in 0..<3 {
            let begin = Double(3_600 * hour), stream = isOtherMicrophone && hour > 0 ? 2 : 1
            files.append(
                file(
                    sound, stream: stream, isAudio: true, from: begin, to: begin + 3_600, interval: 5, jitter: { 0 }))
            // It goes on in another file with its next keyframe.
            files.append(
                file(
                    media, stream: 0, isAudio: false, from: begin + 2, to: begin + 3_600, interval: 1, jitter: { 0 }))
        }
        let places = FileAlignment.places(of: files)
        for audio in [0, 2, 4] {
            let found = worst(
                files[audio + 1], media, places[audio + 1], files[audio], sound, places[audio], from: 0)
            #expect(found < 20, "\(found) ms")
        }
    }

    @Test(
        "A jump of the publisher's clock, which audio and video have in common, moves nothing",
        arguments: [0.5, -2.0, 3_600])
    func clockStep(step: Double) {
        let sound = Media(rate: 48_000, error: 50, start: 0), media = Media(rate: 90_000, error: -50, start: 0)
        func make(_ media: Media, _ stream: Int, _ interval: Double) -> ClockedFile {
            file(
                media, stream: stream, isAudio: stream == 1, from: 0, to: 600, interval: interval, jitter: { 0 },
                stepAt: 301, step: step)
        }
        let audio = make(sound, 1, 5), video = make(media, 0, 1)
        let places = FileAlignment.places(of: [video, audio])
        let found = worst(video, media, places[0], audio, sound, places[1], from: 0)
        #expect(found < 60, "\(found) ms")
    }

    @Test("Without reports files lie where they arrived; of one participant's two videos the second follows the first")
    func withoutReports() {
        let media = Media(rate: 90_000, error: 0, start: 0)
        func silent(_ stream: Int, at arrival: Double) -> ClockedFile {
            file(media, stream: stream, isAudio: false, from: 0, to: 10, interval: 100, jitter: { 0 }, arrival: arrival)
        }
        let places = FileAlignment.places(of: [silent(0, at: 1), silent(1, at: 1.5)])
        #expect(places.map { $0.microseconds(at: 90_000) } == [2_000_000, 2_500_000])
        let screen = file(media, stream: 1, isAudio: false, from: 2, to: 10, interval: 1, jitter: { 0 }, arrival: 2.4)
        let camera = file(media, stream: 0, isAudio: false, from: 0, to: 10, interval: 1, jitter: { 0 })
        #expect(abs(FileAlignment.places(of: [camera, screen])[1].microseconds(at: 0) - 2_000_000) < 1_000)
        #expect(FileAlignment.places(of: []).isEmpty)
    }

    @Test(
        "A clock that shows nonsense puts nothing elsewhere, and traps nowhere",
        arguments: [UInt64(0), 1, .max, 1 << 63, .max - 1])
    func nonsense(ntp: UInt64) {
        let media = Media(rate: 90_000, error: 0, start: 0)
        let camera = file(media, stream: 0, isAudio: false, from: 0, to: 60, interval: 1, jitter: { 0 })
        var screen = file(media, stream: 1, isAudio: false, from: 0, to: 60, interval: 1, jitter: { 0 }, arrival: 3)
        for index in screen.reports.indices { screen.reports[index].ntp = index % 2 == 0 ? ntp : ntp / 2 }
        let places = FileAlignment.places(of: [camera, screen])
        #expect(places[1].microseconds(at: 0) == 3_000_000)
        #expect(abs(places[1].microseconds(at: 90_000 * 59) - 62_000_000) < 1_000_000)
    }
}

import MP4
import MediaControl
import Movies
import Primitives
import Testing

@testable import Recording

@Suite("Files of a track by time and size")
struct SegmentTests {
    private func recorded(_ limit: SegmentLimit) -> Recorded {
        var recorded = Recorded()
        recorded.recorder = TrackRecorder(limit: limit)
        return recorded
    }

    /// Frames at 30 per second, a keyframe with each of `keys`.
    private func video(_ recorded: inout Recorded, frames: Range<Int>, keys: Set<Int>) {
        for frame in frames {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame * 3_000), marker: true,
                MadeFrame.vp8(key: keys.contains(frame), tag: UInt8(truncatingIfNeeded: frame)),
                at: .seconds(Double(frame) / 30))
        }
    }

    private func audio(_ recorded: inout Recorded, packets: Range<Int>) {
        for packet in packets {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [0xfc, 1, 2, 3],
                at: .seconds(Double(packet) / 50))
        }
    }

    @Test(
        "A video goes on in another file with the first keyframe after the limit, which is asked for; no frame is lost between the two"
    )
    func videoByTime() {
        var recorded = recorded(SegmentLimit(length: .seconds(2), bytes: 1 << 30))
        video(&recorded, frames: 0..<200, keys: [0, 30, 75, 150])
        recorded.finish()
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [75, 75, 50])
        #expect(
            recorded.segments.indices.allSatisfy { recorded.samples($0)[0].isSync && recorded.samples($0)[0].time == 0 }
        )
        // Asked for once a second while it is due: at 2 s, 4.5 s and 5.5 s; the third file begins before another second is over.
        #expect(recorded.requests > 0 && recorded.gaps.isEmpty && recorded.closed == 3)
    }

    @Test("Audio goes on in another file at once; the two together have every packet")
    func audioByTime() {
        var recorded = recorded(SegmentLimit(length: .seconds(1), bytes: 1 << 30))
        audio(&recorded, packets: 0..<120)
        recorded.finish()
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [50, 50, 20])
    }

    @Test("A file that begins with the silence of a pause has the time of the silence, not of the packet that ended it")
    func silenceFirst() {
        var recorded = recorded(SegmentLimit(length: .seconds(10), bytes: 1 << 30))
        // Muted from 9 s to 15 s: the sequence goes on, the timestamps jump.
        for (sequence, packet) in (Array(0..<450) + Array(750..<800)).enumerated() {
            recorded.packet(
                .opus, sequence: sequence, timestamp: UInt32(packet * 960), marker: false, [0xfc, 1, 2, 3],
                at: .seconds(Double(packet) / 50))
        }
        recorded.finish()
        var times: [(timestamp: Int64, arrival: MonotonicTime)] = []
        for case .began(_, _, _, let timestamp, let arrival) in recorded.notes { times.append((timestamp, arrival)) }
        #expect(times.count == 2 && times.last.map { $0.timestamp < 11 * 48_000 } == true)
        for (timestamp, arrival) in times {
            #expect(abs(arrival.nanoseconds - timestamp * 1_000_000 / 48) < 1_000_000)
        }
    }

    @Test(
        "A video that pauses for more than ten minutes goes on in another file: a table of samples could not say that one lasts for 14 hours",
        arguments: zip([9, 11, 840], [1, 2, 2]))
    func videoAfterPause(minutes: Int, files: Int) {
        var recorded = recorded(.usual)
        video(&recorded, frames: 0..<30, keys: [0])
        recorded.with { $0.advance(to: .seconds(5), into: &$1) }
        for frame in 30..<60 {
            recorded.packet(
                .vp8, sequence: frame,
                timestamp: UInt32(truncatingIfNeeded: minutes * 60 * 90_000 + frame * 3_000), marker: true,
                MadeFrame.vp8(key: frame == 30, tag: UInt8(truncatingIfNeeded: frame)),
                at: .seconds(Double(minutes * 60) + Double(frame) / 30))
        }
        recorded.finish()
        #expect(recorded.segments.count == files && recorded.closed == files && recorded.gaps.isEmpty)
        #expect(recorded.segments.indices.reduce(0) { $0 + recorded.samples($1).count } == 60)
        var last: Int64 = 0
        for case .began(_, _, _, let timestamp, _) in recorded.notes { last = timestamp }
        // Where timestamps have begun anew meanwhile, the arrival says it, in microseconds.
        let wanted = files == 1 ? 0 : Int64(minutes * 60 + 1) * 90_000
        #expect(abs(last - wanted) <= 90)
    }

    @Test("So many bytes are a limit, too")
    func bySize() {
        var recorded = recorded(SegmentLimit(length: .seconds(3_600), bytes: 2_000))
        audio(&recorded, packets: 0..<400)
        recorded.finish()
        #expect(recorded.segments.count > 1)
        #expect(recorded.segments.dropLast().allSatisfy { $0.count >= 2_000 && $0.count < 3_500 })
        #expect(recorded.segments.indices.reduce(0) { $0 + recorded.samples($1).count } == 400)
    }

    @Test("Timestamps that hardly rise fill no memory: a fragment ends after 1,024 samples, and after 4 MiB")
    func standingTimestamps() {
        var recorded = Recorded()
        for frame in 0..<3_000 {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame), marker: true,
                MadeFrame.vp8(key: frame == 0, tag: UInt8(truncatingIfNeeded: frame)),
                at: .seconds(Double(frame) / 1_000))
        }
        #expect(recorded.samples().count == 2_048)
        recorded.finish()
        #expect(recorded.samples().count == 3_000 && recorded.samples().filter(\.isFirst).count == 3)
        var steps: [RecordingStep] = []
        let format = TrackFormat(entry: .vp8(VideoSize(width: 640, height: 360)))
        var builder = SegmentBuilder(format, usualDuration: 3_000, limit: .usual, &steps)
        let frame = [UInt8](repeating: 1, count: 1 << 20)
        for time in 0..<9 { builder.append(frame, time: Int64(time), isSync: time == 0, &steps) }
        #expect(builder.bytes > 8 << 20 && builder.bytes < 9 << 20)
    }

    @Test("So many samples are a limit, too: audio goes on in another file at once")
    func bySamples() {
        var limit = SegmentLimit.usual
        limit.samples = 100
        var recorded = recorded(limit)
        audio(&recorded, packets: 0..<250)
        recorded.finish()
        // The last sample of each is not yet counted when the next comes.
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [101, 101, 48])
    }

    @Test("A video without keyframes ends a twentieth beyond its samples; what follows up to a keyframe is a gap")
    func exhausted() {
        var limit = SegmentLimit.usual
        limit.samples = 100
        var recorded = recorded(limit)
        video(&recorded, frames: 0..<200, keys: [0, 150])
        recorded.finish()
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [106, 50])
        #expect(recorded.gaps.map(\.reason) == [.format] && recorded.gaps.map(\.frames) == [44])
        #expect(recorded.requests > 0 && recorded.recorder.totals.framesLost == 44)
    }

    @Test("On request a track goes on in another file whatever its length, once")
    func cut() {
        var recorded = recorded(.usual)
        audio(&recorded, packets: 0..<10)
        recorded.with { recorder, _ in recorder.cut() }
        audio(&recorded, packets: 10..<60)
        recorded.finish()
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [10, 50])
    }
}

import MP4
import MediaControl
import Movies
import Primitives
import Testing

@testable import Recording

@Suite
struct VideoRecordingTests {
    /// `count` frames at 30 per second, a keyframe every `interval`; those of `lost` do not arrive.
    private func video(
        _ recorded: inout Recorded, frames: Range<Int>, keyEvery interval: Int = 30, lost: Set<Int> = [],
        timestamp: (Int) -> UInt32 = { UInt32(truncatingIfNeeded: $0 * 3_000) }
    ) {
        for frame in frames where !lost.contains(frame) {
            recorded.packet(
                .vp8, sequence: frame, timestamp: timestamp(frame), marker: true,
                MadeFrame.vp8(key: frame % interval == 0, tag: UInt8(truncatingIfNeeded: frame)),
                at: .seconds(Double(frame) / 30))
        }
    }

    @Test(
        "E15: exact times; every fragment lasts a second at most, and begins with a keyframe where each second has one")
    func times() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<100)
        recorded.finish()
        let samples = recorded.samples()
        #expect(samples.count == 100)
        #expect(samples.map(\.time) == (0..<100).map { $0 * 3_000 })
        #expect(samples.allSatisfy { $0.duration == 3_000 })
        #expect(samples.filter(\.isFirst).allSatisfy { $0.isSync })
        #expect(samples.filter(\.isFirst).count == 4)
        #expect(samples[1].bytes == [0x01, 1, 1])
        #expect(recorded.closed == 1)
        #expect(recorded.gaps.isEmpty)
        // Keyframes that are rarer keep nothing from the disk for longer.
        var rare = Recorded()
        video(&rare, frames: 0..<100, keyEvery: 100)
        rare.finish()
        #expect(rare.samples().filter(\.isFirst).map(\.isSync) == [true, false, false, false])
    }

    @Test(
        "E14: a lost packet costs its frame and those up to the next keyframe, which is asked for; the log has the gap")
    func loss() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<100, lost: [40])
        recorded.with { $0.advance(to: .seconds(5), into: &$1) }
        recorded.finish()
        let samples = recorded.samples()
        #expect(samples.count == 80)
        #expect(samples[40 - 1].time == 39 * 3_000)
        #expect(samples[40].time == 60 * 3_000)
        #expect(samples[40].isSync && samples[40].isFirst)
        #expect(recorded.requests == 1)
        #expect(
            recorded.gaps == [
                RecordingGap(
                    reason: .loss, sequences: (0x1_0000 + 40)...(0x1_0000 + 40), from: 39 * 3_000, to: 60 * 3_000,
                    packets: 1, frames: 20, milliseconds: 700)
            ])
        #expect(recorded.recorder.totals.framesLost == 20)
    }

    @Test("E14: what is missing when the track ends is a gap up to the last packet that came")
    func lossAtTheEnd() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<50, keyEvery: 100, lost: [40])
        recorded.finish()
        #expect(recorded.samples().count == 40)
        #expect(recorded.gaps.map(\.milliseconds) == [333] && recorded.gaps.map(\.packets) == [1])
        #expect(recorded.gaps.map(\.frames) == [10])
    }

    @Test(
        "E14: frames of which nothing came are counted: no more than packets are missing, and than have room in the time"
    )
    func nothingCame() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<100, lost: Set(40..<60))
        // A still screen for two seconds, and the packet after it is lost.
        recorded.packet(
            .vp8, sequence: 101, timestamp: 160 * 3_000, marker: true, MadeFrame.vp8(key: true, tag: 1),
            at: .seconds(5.4))
        recorded.with { $0.advance(to: .seconds(8), into: &$1) }
        recorded.finish()
        #expect(recorded.gaps.map(\.packets) == [20, 1])
        #expect(recorded.gaps.map(\.frames) == [20, 1])
        #expect(recorded.recorder.totals.framesLost == 21)
    }

    @Test("E14: frames that were lost soon after a pause are counted at the pace from before it")
    func lossAfterPause() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<60)
        for sequence in 60..<120 where !(70..<80).contains(sequence) {
            // Ten seconds in which nothing was sent.
            let frame = sequence + 300
            recorded.packet(
                .vp8, sequence: sequence, timestamp: UInt32(frame * 3_000), marker: true,
                MadeFrame.vp8(key: sequence % 20 == 0, tag: UInt8(sequence)), at: .seconds(Double(frame) / 30))
        }
        recorded.with { $0.advance(to: .seconds(20), into: &$1) }
        recorded.finish()
        #expect(recorded.gaps.map(\.packets) == [10])
        #expect(recorded.gaps.map(\.frames) == [10])
    }

    @Test("A packet that comes late, but within a second, leaves no gap")
    func late() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<40, lost: [20])
        video(&recorded, frames: 20..<21)
        video(&recorded, frames: 40..<60)
        recorded.finish()
        #expect(recorded.samples().map(\.time) == (0..<60).map { $0 * 3_000 })
        #expect(recorded.gaps.isEmpty)
    }

    @Test("What the ring refused is a gap of its own: the half frame goes, and the next keyframe begins again")
    func overload() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<10)
        recorded.with { $0.noteGap(.overload, at: .seconds(0.34), into: &$1) }
        // The sequence goes on without a hole: nothing was numbered meanwhile.
        for frame in 10..<20 {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame + 150) * 3_000, marker: true,
                MadeFrame.vp8(key: frame == 12), at: .seconds(Double(frame + 150) / 30))
        }
        recorded.finish()
        #expect(recorded.samples().count == 18)
        #expect(recorded.gaps.map(\.reason) == [.overload])
        #expect(recorded.gaps[0].milliseconds == (162 - 9) * 1_000 / 30)
    }

    @Test("E9: decode times increase strictly with equal and backward timestamps, and timestamps may wrap")
    func strictlyIncreasing() {
        var recorded = Recorded()
        let start = UInt32.max - 100_000
        let odd: [Int: UInt32] = [20: 19 * 3_000, 50: 50 * 3_000 - 4_000]
        video(&recorded, frames: 0..<100) { start &+ (odd[$0] ?? UInt32($0 * 3_000)) }
        recorded.finish()
        let times = recorded.samples().map(\.time)
        #expect(times.count == 100)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(times[99] == 99 * 3_000)
    }

    @Test("E9: a jump of the publisher's clock is followed by arrival time and logged")
    func clockStep() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<60) { $0 < 30 ? UInt32($0 * 3_000) : UInt32($0 * 3_000) + 900_000_000 }
        recorded.finish()
        let times = recorded.samples().map(\.time)
        #expect(times.count == 60)
        #expect(abs(times[30] - 90_000) <= 1)
        #expect(abs(times[59] - 59 * 3_000) <= 1)
        let steps = recorded.notes.filter { if case .clockStep = $0 { true } else { false } }
        #expect(steps.count == 1)
    }

    @Test("A12: a change of the size stays in one file for VP8, and the log has it")
    func sizes() {
        var recorded = Recorded()
        for frame in 0..<40 {
            let width = frame < 20 ? 640 : 414
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame) * 3_000, marker: true,
                MadeFrame.vp8(key: frame % 10 == 0, width: width, height: 896), at: .seconds(Double(frame) / 30))
        }
        recorded.finish()
        #expect(recorded.segments.count == 1)
        let sizes = recorded.notes.compactMap {
            if case .size(let size, let time) = $0 { ("\(size.width)", time) } else { nil }
        }
        #expect(sizes.map(\.0) == ["640", "414"])
        #expect(sizes.map(\.1) == [0, 60_000])
    }

    @Test("A rotation in mid-stream begins a new file with its own matrix at the next keyframe, which is asked for")
    func rotation() {
        var recorded = Recorded()
        for frame in 0..<40 {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame) * 3_000, marker: true,
                MadeFrame.vp8(key: frame % 20 == 0), at: .seconds(Double(frame) / 30), rotation: frame < 10 ? 0 : 1)
        }
        recorded.finish()
        #expect(recorded.segments.count == 2)
        #expect(recorded.requests == 1)
        #expect(recorded.samples(0).count == 20)
        #expect(recorded.samples(1).first?.time == 0)
        #expect(recorded.notes.contains(.rotation(.quarter, timestamp: 60_000)))
    }

    @Test("Nothing for a second: everything that came is on the disk, and the next frame begins a fragment of its own")
    func pause() {
        var recorded = Recorded()
        video(&recorded, frames: 0..<10)
        recorded.with { $0.advance(to: .seconds(1.5), into: &$1) }
        #expect(recorded.samples().count == 10)
        for frame in 10..<20 {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame * 3_000 + 450_000), marker: true,
                MadeFrame.vp8(key: false), at: .seconds(5 + Double(frame) / 30))
        }
        recorded.finish()
        let samples = recorded.samples()
        #expect(samples.count == 20)
        #expect(samples[10].time == 10 * 3_000 + 450_000)
        #expect(samples[10].isFirst)
    }

    @Test("E8: a stream with B frames ends with a stable error, and what was recorded stays")
    func reordering() {
        var recorded = Recorded()
        let sets = [MadeFrame.sps720, MadeFrame.pps]
        for (index, set) in sets.enumerated() {
            recorded.packet(.h264, sequence: index, timestamp: 0, marker: false, set, at: .zero)
        }
        let order = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11, 15, 13, 14]
        for (index, frame) in order.enumerated() {
            recorded.packet(
                .h264, sequence: index + 2, timestamp: UInt32(frame) * 3_000, marker: true,
                [index == 0 ? 0x65 : 0x41, 0x88, 1, 2], at: .seconds(Double(index) / 30))
        }
        recorded.finish()
        #expect(recorded.faults == [.reorderingUnsupported])
        let times = recorded.samples().map(\.time)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test("A codec without a form in files is refused")
    func refused() {
        var recorded = Recorded()
        recorded.packet(.otherAudio, sequence: 1, timestamp: 0, marker: true, [1, 2], at: .zero)
        #expect(recorded.faults == [.codecNotRecordable])
        #expect(recorded.segments.isEmpty)
    }
}

@Suite
struct H264RecordingTests {
    private static let sps2: [UInt8] = {
        var set = MadeFrame.sps720
        set[3] = 0x28
        return set
    }()

    @Test(
        "E1, E2, E7: NAL units lie behind their lengths, sets and delimiters are not among them, slices of one frame are one sample"
    )
    func units() {
        var recorded = Recorded()
        let sets: [UInt8] =
            [0x78, 0, UInt8(MadeFrame.sps720.count)] + MadeFrame.sps720 + [0, UInt8(MadeFrame.pps.count)]
            + MadeFrame.pps
        recorded.packet(.h264, sequence: 0, timestamp: 0, marker: false, sets, at: .zero)
        recorded.packet(.h264, sequence: 1, timestamp: 0, marker: false, [0x09, 0xf0], at: .zero)
        // Two slices in fragments, two in packets of their own.
        recorded.packet(.h264, sequence: 2, timestamp: 0, marker: false, [0x7c, 0x85, 0x88, 1], at: .zero)
        recorded.packet(.h264, sequence: 3, timestamp: 0, marker: false, [0x7c, 0x45, 2, 3], at: .zero)
        recorded.packet(.h264, sequence: 4, timestamp: 0, marker: false, [0x65, 0x44, 4], at: .zero)
        recorded.packet(.h264, sequence: 5, timestamp: 0, marker: false, [0x65, 0x22, 5], at: .zero)
        recorded.packet(.h264, sequence: 6, timestamp: 0, marker: true, [0x65, 0x11, 6], at: .zero)
        recorded.packet(.h264, sequence: 7, timestamp: 3_000, marker: true, [0x41, 0x9a, 7], at: .seconds(0.03))
        recorded.finish()
        #expect(recorded.isDescribed(by: MadeFrame.sps720, segment: 0))
        let samples = recorded.samples()
        #expect(samples.count == 2)
        #expect(
            samples[0].bytes == [0, 0, 0, 5, 0x65, 0x88, 1, 2, 3, 0, 0, 0, 3, 0x65, 0x44, 4, 0, 0, 0, 3, 0x65, 0x22, 5]
                + [0, 0, 0, 3, 0x65, 0x11, 6])
        #expect(samples[0].isSync && !samples[1].isSync)
        #expect(samples[1].bytes == [0, 0, 0, 3, 0x41, 0x9a, 7])
    }

    @Test("A delimiter in a packet of its own hides no keyframe, neither the first nor one after a loss")
    func delimiters() {
        var recorded = Recorded()
        // 4 is lost.
        for (first, timestamp) in [(0, UInt32(0)), (5, 6_000)] {
            for (index, unit) in [[0x09, 0xf0], MadeFrame.sps720, MadeFrame.pps, [0x65, 0x88, 1]].enumerated() {
                recorded.packet(
                    .h264, sequence: first + index, timestamp: timestamp, marker: index == 3, unit,
                    at: .seconds(Double(timestamp) / 90_000))
            }
        }
        recorded.finish()
        #expect(recorded.samples().map(\.isSync) == [true, true])
    }

    @Test("E6: other parameter sets begin a new file with theirs; the same sets again do not")
    func newSets() {
        var recorded = Recorded()
        var sequence = 0
        for (frame, set) in [MadeFrame.sps720, MadeFrame.sps720, Self.sps2].enumerated() {
            for unit in [set, MadeFrame.pps, [0x65, 0x88, 1]] {
                recorded.packet(
                    .h264, sequence: sequence, timestamp: UInt32(frame) * 3_000, marker: unit[0] == 0x65, unit,
                    at: .seconds(Double(frame) / 30))
                sequence += 1
            }
        }
        recorded.finish()
        #expect(recorded.segments.count == 2)
        #expect(recorded.samples(0).count == 2)
        #expect(recorded.samples(1).count == 1)
        #expect(recorded.isDescribed(by: MadeFrame.sps720, segment: 0))
        #expect(recorded.isDescribed(by: Self.sps2, segment: 1))
    }

    @Test(
        "E17: a video larger than its level permits is flagged, once",
        arguments: [(0x1e, [30]), (0x1f, [])] as [(UInt8, [UInt8])])
    func level(_ level: UInt8, flagged: [UInt8]) {
        #expect(!H264Level.exceeds(31, VideoSize(width: 1_280, height: 720)))
        #expect(H264Level.exceeds(31, VideoSize(width: 1_280, height: 736)))
        #expect(H264Level.exceeds(31, VideoSize(width: 1_920, height: 1_080)))
        #expect(!H264Level.exceeds(40, VideoSize(width: 1_920, height: 1_080)))
        var recorded = Recorded(), sequence = 0
        var set = MadeFrame.sps720
        set[3] = level
        // The second file begins by the rotation, and has the sets of the first.
        for frame in 0..<2 {
            for unit in [set, MadeFrame.pps, [0x65, 0x88, 1]] {
                recorded.packet(
                    .h264, sequence: sequence, timestamp: UInt32(frame) * 3_000, marker: unit[0] == 0x65, unit,
                    at: .seconds(Double(frame) / 30), rotation: UInt8(frame))
                sequence += 1
            }
        }
        recorded.finish()
        #expect(recorded.segments.count == 2)
        let levels = recorded.notes.compactMap { if case .levelExceeded(let level, _) = $0 { level } else { nil } }
        #expect(levels == flagged)
    }
}

@Suite
struct LongRecordingTests {
    @Test(
        "E10: after two hours the last frame and the last packet lie exactly where their timestamps say, in both timescales"
    )
    func twoHours() {
        var video = Recorded(), audio = Recorded()
        let frames = 2 * 3_600 * 30, packets = 2 * 3_600 * 50
        for frame in 0..<frames {
            video.packet(
                .vp8, sequence: frame, timestamp: UInt32(truncatingIfNeeded: 4_000_000_000 + frame * 3_000),
                marker: true,
                MadeFrame.vp8(key: frame % 300 == 0), at: .seconds(Double(frame) / 30))
        }
        for packet in 0..<packets {
            audio.packet(
                .opus, sequence: packet, timestamp: UInt32(truncatingIfNeeded: 4_000_000_000 + packet * 960),
                marker: false,
                [0xfc, 1, 2], at: .seconds(Double(packet) / 50))
        }
        video.finish()
        audio.finish()
        #expect(video.end == Int64(frames) * 3_000)
        #expect(audio.end == Int64(packets) * 960)
        #expect(video.storedEnd == video.end && audio.storedEnd == audio.end)
        #expect(video.notes.filter { if case .clockStep = $0 { true } else { false } }.isEmpty)
    }
}

extension Recorded {
    /// Decode time behind the last sample of all segments together.
    var end: Int64 {
        var base: Int64 = 0
        var end: Int64 = 0
        for note in notes {
            if case .began(_, _, _, let timestamp, _) = note { base = timestamp }
            if case .ended(_, _, _, let duration) = note { end = base + duration }
        }
        return end
    }
}

import MP4
import MediaControl
import Movies
import Primitives
import Testing

@testable import Recording

@Suite("How often a track begins another file")
struct FilePaceTests {
    @Test("Four files begin at once, further ones one per second")
    func pace() {
        var pace = FilePace()
        var begun: [Int64] = []
        for tenth in 0..<40 {
            let now = MonotonicTime(milliseconds: Int64(tenth) * 100)
            guard pace.allows(at: now) else { continue }
            pace.begin(at: now)
            begun.append(now.milliseconds)
        }
        #expect(begun == [0, 100, 200, 300, 1_000, 2_000, 3_000])
        let later = MonotonicTime(milliseconds: 60_000)
        for _ in 0..<4 { pace.begin(at: later) }
        #expect(!pace.allows(at: later))
    }

    @Test("Keyframes with other parameter sets each begin six files in three seconds; what no file takes is a gap")
    func parameterSets() {
        var recorded = Recorded()
        var other = MadeFrame.sps720
        other[3] = 0x28
        for frame in 0..<90 {
            let units = [frame % 2 == 0 ? MadeFrame.sps720 : other, MadeFrame.pps, [0x65, 0x88, 1]]
            for (index, unit) in units.enumerated() {
                recorded.packet(
                    .h264, sequence: 3 * frame + index, timestamp: UInt32(frame) * 3_000, marker: index == 2, unit,
                    at: .seconds(Double(frame) / 30))
            }
        }
        recorded.finish()
        #expect(recorded.segments.count == 6 && recorded.closed == 6)
        let totals = recorded.recorder.totals
        #expect(totals.framesLost > 0 && totals.framesWritten + totals.framesLost == 90)
        #expect(!recorded.gaps.isEmpty && recorded.gaps.allSatisfy { $0.reason == .format })
    }

    @Test("A rotation that comes too soon gets its file with a keyframe that is requested later; no frame is lost")
    func rotations() {
        var recorded = Recorded()
        let keys: Set = [0, 5, 10, 15, 20, 25, 45]
        for frame in 0..<60 {
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame) * 3_000, marker: true,
                MadeFrame.vp8(key: keys.contains(frame)), at: .seconds(Double(frame) / 30),
                rotation: UInt8(min(frame / 5, 6) % 4))
        }
        recorded.finish()
        #expect(recorded.segments.indices.map { recorded.samples($0).count } == [5, 5, 5, 30, 15])
        #expect(recorded.notes.contains(.rotation(.half, timestamp: 45 * 3_000)))
        // With the first rotation, and when a file may begin again and the request before is a second old.
        #expect(recorded.requests == 2 && recorded.gaps.isEmpty)
    }

    @Test("A phone that is turned twice within a second ends with the right rotation: the request is made up for")
    func turnedTwice() {
        var recorded = Recorded()
        // The publisher answers each request with the next frame.
        var isRequested = true
        for frame in 0..<90 {
            let before = recorded.requests
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame) * 3_000, marker: true,
                MadeFrame.vp8(key: isRequested), at: .seconds(Double(frame) / 30),
                rotation: frame < 10 ? 0 : frame < 20 ? 1 : 2)
            isRequested = recorded.requests > before
        }
        recorded.finish()
        let rotations = recorded.notes.compactMap { if case .rotation(let rotation, _) = $0 { rotation } else { nil } }
        #expect(rotations == [.quarter, .half])
        #expect(recorded.segments.count == 3 && recorded.gaps.isEmpty)
    }

    @Test("A video that is upright again behind a file that was lost says so")
    func uprightAgain() {
        var recorded = Recorded()
        for frame in 0..<60 {
            if frame == 30 { recorded.with { recorder, _ in recorder.abandonSegment() } }
            recorded.packet(
                .vp8, sequence: frame, timestamp: UInt32(frame) * 3_000, marker: true,
                MadeFrame.vp8(key: frame % 30 == 0), at: .seconds(Double(frame) / 30), rotation: frame < 30 ? 1 : 0)
        }
        recorded.finish()
        let rotations = recorded.notes.compactMap { if case .rotation(let rotation, _) = $0 { rotation } else { nil } }
        #expect(rotations == [.quarter, .none] && recorded.segments.count == 2)
    }

    @Test("A track with as many files as it may have ends with a stable error", arguments: [Codec.vp8, .opus])
    func mostFiles(codec: Codec) {
        var recorded = Recorded()
        recorded.recorder = TrackRecorder(firstSegment: FilePace.mostFiles)
        recorded.packet(
            codec, sequence: 0, timestamp: 0, marker: true,
            codec == .vp8 ? MadeFrame.vp8(key: true) : [0xfc, 1, 2, 3], at: .zero)
        recorded.finish()
        #expect(recorded.faults == [.tooManyFiles] && recorded.faults.map(\.rawValue) == ["too_many_files"])
        #expect(recorded.segments.isEmpty)
    }
}

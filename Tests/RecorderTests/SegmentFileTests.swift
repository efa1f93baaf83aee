import MediaControl
import MediaWorkers
import Primitives
import Rooms
import Testing

@testable import Recorder

@Suite("Files of a recording in progress")
struct SegmentFileTests {
    @Test(
        "A finished file gets its index in front while the recording goes on, and what is recorded later does not undo that"
    )
    func indexOfEachFile() throws {
        let bench = try RecorderBench(indexes: true)
        bench.begin { $0.segmentSeconds = 2 }
        bench.audio(0..<250)
        bench.read()
        bench.finisher?.workOff()
        let files = try #require(bench.summary?.tracks.first?.files)
        #expect(bench.summary?.state == .recording)
        #expect(files.map(\.index) == [.front, .front, nil])
        #expect(files.map(\.durationMilliseconds) == [2_000, 2_000, nil])
        bench.pass()
        #expect(bench.summary?.tracks.first?.files.map(\.index) == [.front, .front, nil])
        bench.end()
        #expect(bench.summary?.tracks.first?.files.map(\.index) == [.front, .front, .pending])
        bench.finisher?.workOff()
        #expect(bench.summary?.tracks.first?.files.map(\.index) == [.front, .front, .front])
        #expect(bench.written["RC_1"] == bench.summary)
        #expect(bench.books.statistics.filesFinished == 3)
    }

    @Test("Files are named by the recording's template; those for which it leaves no other name get a number")
    func names() throws {
        let bench = try RecorderBench()
        bench.begin {
            $0.segmentSeconds = 2
            $0.fileName = "{room}-{participant}-{source}"
        }
        bench.audio(0..<250)
        bench.read()
        bench.end()
        let expected = ["lecture-ada-microphone.mp4", "lecture-ada-microphone-2.mp4", "lecture-ada-microphone-3.mp4"]
        #expect(bench.summary?.tracks.first?.files.map(\.name) == expected)
        let names = RecordingFolder(bench.folder).names(in: "\(bench.folder)/RM_1/RC_1")
        #expect(Set(names) == Set(expected + ["TR_camera.jsonl", "recording.json"]))
        #expect(bench.books.delete("RC_1"))
        #expect(RecordingFolder(bench.folder).recordings().isEmpty)
    }

    @Test("Each file of a video has its size in the summary, not the first one alone")
    func size() throws {
        let bench = try RecorderBench()
        bench.begin { $0.segmentSeconds = 2 }
        let camera = TrackInfo(
            sid: "TR_video", participant: "PA_ada", identity: "ada", name: "", kind: .video, source: .camera, mid: "1")
        bench.record(6, camera)
        bench.video(0..<240, stream: 6, after: 0)
        bench.read()
        bench.audio(0..<0, stream: 6, then: [.ended])
        bench.end()
        let files = try #require(bench.summary?.tracks.first { $0.sid == "TR_video" }?.files)
        #expect(files.count > 1)
        #expect(files.allSatisfy { $0.width == 640 && $0.height == 360 })
    }

    @Test("A file that begins in a pause of the publisher begins when its silence does")
    func pause() throws {
        let bench = try RecorderBench()
        bench.begin { $0.segmentSeconds = 10 }
        bench.audio(0..<450)
        bench.audio(750..<800, firstSequence: 450)
        bench.read()
        bench.end()
        let files = try #require(bench.summary?.tracks.first?.files)
        try #require(files.count == 2)
        let apart = files[1].startMilliseconds - files[0].startMilliseconds
        #expect(abs(apart - (files[1].rtpTime - files[0].rtpTime) / 48) <= 1)
        #expect(apart < 11_000 && bench.summary?.tracks.first?.gapCount == 0)
    }
}

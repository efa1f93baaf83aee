import Recorder
import Testing

@testable import OfflineJobs

@Suite("Files with several videos")
struct SharedFileTests {
    private func part(_ file: String, _ stream: Int, isVideo: Bool = true) -> RecordingTimeline.Part {
        RecordingTimeline.Part(
            file: file, stream: stream, track: "TR_\(stream)", participant: "PA_1", isVideo: isVideo, start: 1_000_000,
            length: 9_000_000, stretch: 2, spans: [5_000_000..<19_000_000])
    }

    @Test("Only videos of files that have several get files of their own, at the moments at which they were shown")
    func replaced() throws {
        let timeline = RecordingTimeline([
            part("room.mp4", 0), part("room.mp4", 1, isVideo: false), part("room.mp4", 2), part("one.mp4", 0),
            part("one.mp4", 1, isVideo: false),
        ])
        let shared = SharedFile.all(of: timeline, prefix: "JB_1")
        #expect(
            shared == [
                SharedFile(name: "room.mp4", targets: [0: "JB_1.video.0.0.mp4", 2: "JB_1.video.0.2.mp4"])
            ])
        let apart = try #require(shared.first).replaced(in: timeline, [0: 0, 2: 2_000_000])
        #expect(
            apart.parts.map(\.file) == [
                "JB_1.video.0.0.mp4", "room.mp4", "JB_1.video.0.2.mp4", "one.mp4", "one.mp4",
            ])
        #expect(apart.parts.map(\.stream) == [0, 1, 0, 0, 1])
        #expect(apart.parts.map(\.start) == [1_000_000, 1_000_000, 5_000_000, 1_000_000, 1_000_000])
        #expect(apart.parts.map(\.length) == [9_000_000, 9_000_000, 7_000_000, 9_000_000, 9_000_000])
        #expect(apart.parts.map(\.spans) == timeline.parts.map(\.spans) && apart.length == timeline.length)
    }
}

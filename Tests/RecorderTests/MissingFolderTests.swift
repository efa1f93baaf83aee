import Glibc
import MediaControl
import MediaWorkers
import Primitives
import Testing

@testable import Recorder

@Suite("A recording whose folder could not be made")
struct MissingFolderTests {
    /// Packets of Opus, 20 ms each; what happened.
    private func receive(_ packets: Range<Int>, _ track: RecordedTrack) -> [RecordedTrack.News] {
        var news: [RecordedTrack.News] = []
        for index in packets {
            let timestamp = UInt32(index * 960), now = MonotonicTime(milliseconds: Int64(20 * index))
            let bytes: [UInt8] = [
                0x80, RecordedStreamFormat.payloadType(of: .opus), UInt8(index >> 8), UInt8(index & 255),
                UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 255), UInt8(timestamp >> 8 & 255),
                UInt8(timestamp & 255), 0, 0, 0, 1, 0xfc, 1, 2, 3,
            ]
            let header = RecordBatch.Header(kind: .packet, length: bytes.count, stream: 5, arrival: now)
            news += track.receive(header, bytes, at: now)
        }
        return news
    }

    @Test("What comes after the disk permits the folder again is on the disk, with its log")
    func later() throws {
        let bench = try RecorderBench()
        let room = "\(bench.folder)/RM_1", folder = "\(room)/RC_1"
        // A file in the place of the folder.
        try RecordingFolder(bench.folder).make(room)
        try OutputFile(folder, isNew: true).write([1], at: 0)
        let summary = RecordingSummary(sid: "RC_1", state: .recording, room: "r", roomSid: "RM_1", startedAt: 0)
        let track = RecordedTrack(
            RecorderBench.track, track: TrackID(5), recording: summary, folder: folder, clockOffset: 0,
            movesIndexes: false, part: nil, encode: { Array($0.type.utf8) })
        let failures = receive(0..<50, track).count { if case .failed("disk_error") = $0 { true } else { false } }
        #expect(failures == 1 && track.summary.files.isEmpty)
        unlink(folder)
        // More than ten seconds later.
        _ = receive(600..<650, track)
        _ = track.finish(at: MonotonicTime(milliseconds: 13_000))
        let file = try #require(track.summary.files.first)
        #expect(file.samples == 50 && track.summary.gaps.map(\.reason) == ["disk"])
        let names = RecordingFolder(bench.folder).names(in: folder)
        #expect(names == [file.name, "TR_camera.jsonl"])
        let log = RecordingFolder(bench.folder).contents("\(folder)/TR_camera.jsonl") ?? []
        #expect(String(decoding: log, as: UTF8.self) == "gap\nstart\nend\n")
    }

    @Test("A log that the disk refuses costs the media nothing, and goes on with a line of its own")
    func refusedLog() throws {
        let bench = try RecorderBench()
        let folder = "\(bench.folder)/RM_1/RC_1", log = "\(folder)/TR_camera.jsonl"
        try RecordingFolder(bench.folder).make(folder)
        // A device that is always full.
        symlink("/dev/full", log)
        let summary = RecordingSummary(sid: "RC_1", state: .recording, room: "r", roomSid: "RM_1", startedAt: 0)
        let track = RecordedTrack(
            RecorderBench.track, track: TrackID(5), recording: summary, folder: folder, clockOffset: 0,
            movesIndexes: false, part: nil, encode: { Array($0.type.utf8) })
        let news = receive(0..<50, track)
        let refusals = news.count { if case .logRefused = $0 { true } else { false } }
        let failures = news.count { if case .failed = $0 { true } else { false } }
        #expect(refusals == 1 && failures == 0)
        unlink(log)
        _ = track.finish(at: MonotonicTime(milliseconds: 1_000))
        #expect(track.summary.files.map(\.samples) == [50] && track.summary.gaps.isEmpty)
        let lines = RecordingFolder(bench.folder).contents(log) ?? []
        #expect(String(decoding: lines, as: UTF8.self) == "\nend\n")
    }

    @Test("A log that cannot be opened is reported once, and begins with the first line behind that")
    func unopenedLog() throws {
        let bench = try RecorderBench()
        let folder = "\(bench.folder)/RM_1/RC_1", log = "\(folder)/TR_camera.jsonl"
        // A folder in the place of the log.
        try RecordingFolder(bench.folder).make(log)
        let summary = RecordingSummary(sid: "RC_1", state: .recording, room: "r", roomSid: "RM_1", startedAt: 0)
        let track = RecordedTrack(
            RecorderBench.track, track: TrackID(5), recording: summary, folder: folder, clockOffset: 0,
            movesIndexes: false, part: nil, encode: { Array($0.type.utf8) })
        var news = receive(0..<50, track)
        // A sender report is another line.
        var report = RecordBatch.Header(kind: .anchor, stream: 5, arrival: MonotonicTime(milliseconds: 1_000))
        (report.timestamp, report.ntp) = (50 * 960, 3_900_000_000 << 32)
        news += track.receive(report, [], at: MonotonicTime(milliseconds: 1_000))
        let refusals = news.count { if case .logRefused = $0 { true } else { false } }
        let failures = news.count { if case .failed = $0 { true } else { false } }
        #expect(refusals == 1 && failures == 0)
        rmdir(log)
        _ = track.finish(at: MonotonicTime(milliseconds: 1_100))
        let lines = RecordingFolder(bench.folder).contents(log) ?? []
        #expect(String(decoding: lines, as: UTF8.self) == "end\n")
    }
}

import Glibc
import Logging
import MP4
import MediaControl
import MediaWorkers
import Movies
import Primitives
import Rooms
import Testing

@testable import Recorder

@Suite("Tracks joined into one file")
struct JoinTests {
    private static let camera = TrackInfo(
        sid: "TR_video", participant: "PA_ada", identity: "ada", name: "", kind: .video, source: .camera, mid: "1")
    private static let other = TrackInfo(
        sid: "TR_bob", participant: "PA_bob", identity: "bob", name: "", kind: .audio, source: .microphone, mid: "0")

    private func names(_ bench: RecorderBench) -> [String] {
        RecordingFolder(bench.folder).names(in: "\(bench.folder)/RM_1/RC_1")
    }

    private func movie(_ bench: RecorderBench, _ name: String) throws -> MovieFile {
        try #require(RecordingFile("\(bench.folder)/RM_1/RC_1/\(name)")?.movie())
    }

    /// Audio of 6 s, and video that begins a second later.
    private func record(_ files: RecordingOptions.Files, change: (inout RecordingSummary) -> Void = { _ in }) throws
        -> RecorderBench
    {
        let bench = try RecorderBench(indexes: true)
        bench.begin {
            $0.files = files
            change(&$0)
        }
        bench.record(6, Self.camera)
        bench.audio(0..<300)
        bench.video(0..<150, stream: 6, after: 1)
        bench.read()
        return bench
    }

    private func end(_ bench: RecorderBench, streams: [UInt64] = [6]) {
        for stream in streams { bench.audio(0..<0, stream: stream, then: [.ended]) }
        bench.end()
    }

    @Test(
        "A participant's tracks become one file, each in its place; then those of the tracks are deleted, and the log stays"
    )
    func participant() throws {
        let bench = try record(.participant)
        end(bench)
        #expect(bench.summary?.joined?.map(\.state) == [.pending])
        bench.finisher?.workOff()
        let summary = try #require(bench.summary), joined = try #require(summary.joined?.first)
        #expect(joined.name == "PA_ada.000.mp4" && joined.state == .ready && joined.identity == "ada")
        #expect(names(bench) == ["PA_ada.000.mp4", "TR_camera.jsonl", "TR_video.jsonl", "recording.json"])
        #expect(summary.tracks.flatMap(\.files).allSatisfy { $0.joined == "PA_ada.000.mp4" })
        #expect(summary.storedFiles.map(\.name) == ["PA_ada.000.mp4"] && summary.bytes == joined.bytes)
        #expect(bench.written["RC_1"] == summary)
        let movie = try movie(bench, joined.name)
        #expect(movie.tracks.map(\.isVideo) == [true, false])
        #expect(movie.tracks.map(\.samples.count) == [150, 300])
        #expect(abs(movie.tracks[0].samples[0].time - 90_000) < 4_500 && movie.tracks[1].samples[0].time == 0)
        #expect(abs((joined.durationMilliseconds ?? 0) - 6_000) < 50)
    }

    @Test("A room's tracks become one file under the recording's template")
    func room() throws {
        let bench = try record(.room) { $0.fileName = "{room}-{participant}-{segment}" }
        bench.record(7, Self.other)
        bench.audio(0..<100, stream: 7)
        bench.read()
        end(bench, streams: [6, 7])
        bench.finisher?.workOff()
        #expect(bench.summary?.storedFiles.map(\.name) == ["lecture-all-000.mp4"])
        #expect(try movie(bench, "lecture-all-000.mp4").tracks.count == 3)
    }

    @Test("Participants have files of their own")
    func participants() throws {
        let bench = try record(.participant) { $0.fileName = "{participant}" }
        bench.record(7, Self.other)
        bench.audio(0..<100, stream: 7)
        bench.read()
        end(bench, streams: [6, 7])
        bench.finisher?.workOff()
        #expect(Set(bench.summary?.storedFiles.map(\.name) ?? []) == ["ada.mp4", "bob.mp4"])
    }

    @Test(
        "A part that is long enough is followed by another, which begins with a keyframe of the video; the first is joined while the recording goes on"
    )
    func parts() throws {
        let bench = try record(.participant) { $0.segmentSeconds = 5 }
        for _ in 0..<7 { bench.pass() }
        // The next keyframe is the beginning; audio follows at once.
        bench.video(150..<240, stream: 6, after: 1)
        bench.read()
        bench.audio(300..<400)
        bench.read()
        bench.pass()
        bench.finisher?.workOff()
        let summary = try #require(bench.summary)
        #expect(summary.state == .recording)
        // Brought to the disk before the files of the tracks were removed.
        #expect(names(bench).contains("recording.copy.json"))
        #expect(summary.tracks.map { $0.files.map(\.part) } == [[0, 1], [0, 1]])
        #expect(summary.joined?.map(\.state) == [.ready])
        #expect(summary.storedFiles.map(\.name) == ["PA_ada.000.mp4", "TR_camera.001.mp4", "TR_video.001.mp4"])
        end(bench)
        bench.finisher?.workOff()
        #expect(bench.summary?.storedFiles.map(\.name) == ["PA_ada.000.mp4", "PA_ada.001.mp4"])
        let first = try movie(bench, "PA_ada.000.mp4"), second = try movie(bench, "PA_ada.001.mp4")
        #expect(first.tracks.map(\.samples.count) == [150, 300] && second.tracks.map(\.samples.count) == [90, 100])
    }

    @Test("A part is as large as all its files together, also those of tracks that have ended")
    func partOfEndedTracks() throws {
        let bench = try RecorderBench(indexes: true)
        bench.begin {
            ($0.files, $0.segmentBytes) = (.room, 40_000)
        }
        // 16 bytes per packet in a fragment, and its head: 28 kB, and with a table 35 kB.
        for start in stride(from: 0, to: 1_500, by: 300) {
            bench.audio(start..<(start + 300))
            bench.read()
        }
        bench.audio(0..<0, then: [.ended])
        bench.record(7, Self.other)
        for start in stride(from: 0, to: 900, by: 300) {
            bench.audio(start..<(start + 300), stream: 7)
            bench.read()
        }
        bench.pass()
        bench.audio(900..<1_000, stream: 7)
        bench.read()
        bench.end(stream: 7)
        #expect(bench.summary?.tracks.map { $0.files.map(\.part) } == [[0], [0, 1]])
    }

    @Test("A rotation in mid-call begins another file for the participant, and none for the room")
    func rotation() throws {
        for (files, expected) in [(RecordingOptions.Files.participant, 2), (.room, 1)] {
            let bench = try record(files)
            bench.video(150..<240, stream: 6, after: 1, rotation: 1)
            bench.audio(300..<400)
            bench.read()
            end(bench)
            bench.finisher?.workOff()
            let stored = try #require(bench.summary?.storedFiles.map(\.name))
            #expect(stored.count == expected)
            #expect(try stored.flatMap { try movie(bench, $0).tracks.filter(\.isVideo) }.count == 2)
        }
    }

    @Test("Without room beside the reserve the tracks keep their files, and the summary says why")
    func diskFull() throws {
        let bench = try RecorderBench(indexes: true) { $0.reserveBytes = .max / 2 }
        bench.begin { $0.files = .participant }
        bench.audio(0..<100)
        bench.read()
        bench.end()
        bench.finisher?.workOff()
        #expect(bench.summary?.joined?.map(\.fault) == ["disk_full"])
        #expect(names(bench) == ["TR_camera.000.mp4", "TR_camera.jsonl", "recording.json"])
        #expect(bench.summary?.storedFiles.map(\.name) == ["TR_camera.000.mp4"])
    }

    @Test("A part that was not joined for want of disk is joined once there is room")
    func roomLater() throws {
        let bench = try record(.participant), finisher = try #require(bench.finisher)
        end(bench)
        var summary = try #require(bench.summary)
        summary.joined?[0].state = .failed
        summary.joined?[0].fault = "disk_full"
        bench.books.add(summary)
        finisher.retryRefused(at: bench.now)
        finisher.workOff()
        let joined = try #require(bench.summary?.joined?.first)
        #expect(joined.state == .ready && joined.fault == nil)
        #expect(bench.summary?.storedFiles.map(\.name) == ["PA_ada.000.mp4"] && bench.written["RC_1"] == bench.summary)
    }

    @Test("A part is not joined later after a fault of the disk, for a storage, or while a job reads its files")
    func notJoinedLater() throws {
        let bench = try record(.participant)
        end(bench)
        var summary = try #require(bench.summary)
        let job = RecordingJob(sid: "JB_1", recording: "RC_1", kind: .composition, createdAt: 0)
        let upload = RecordingSummary.Upload(name: "TR_video.000.mp4", key: "TR_video.000.mp4")
        for (fault, uploads, jobs) in [
            ("disk_error", [], []), ("disk_full", [upload], []), ("disk_full", [], [job]),
        ] as [(String, [RecordingSummary.Upload], [RecordingJob])] {
            summary.joined?[0].state = .failed
            summary.joined?[0].fault = fault
            (summary.uploads, summary.jobs) = (uploads, jobs)
            bench.books.add(summary)
            #expect(bench.books.retryRefused().isEmpty)
            #expect(bench.summary == summary)
        }
    }

    @Test("The tracks' files stay when the summary that replaces them by the joined one cannot be written")
    func summaryNotWritten() throws {
        let bench = try record(.participant)
        end(bench)
        // What takes the name of the new summary is no file, so the disk refuses to write it.
        let obstacle = "\(bench.folder)/RM_1/RC_1/recording.json.new"
        mkdir(obstacle, 0o700)
        bench.finisher?.workOff()
        rmdir(obstacle)
        #expect(bench.summary?.joined?.map(\.state) == [.ready])
        #expect(Set(names(bench)).isSuperset(of: ["TR_camera.000.mp4", "TR_video.000.mp4", "PA_ada.000.mp4"]))
    }

    @Test("E16: a server that ends while it records, or while it joins, does at its next start what it had not done")
    func crash() throws {
        let bench = try record(.participant)
        // As the process leaves it that is killed in the middle.
        let files = RecordingFolder(bench.folder)
        func restart() throws -> (books: RecordingBooks, finisher: FileFinisher) {
            let books = try RecordingBooks(
                RecorderConfiguration(directory: bench.folder), bench.codec, logger: .quiet)
            let finisher = try FileFinisher(books)
            for recording in books.awaitingWork { finisher.post(recording) }
            return (books, finisher)
        }
        for _ in 0..<8 { bench.pass() }
        let (books, finisher) = try restart()
        #expect(books["RC_1"]?.ended == "crash" && books["RC_1"]?.joined?.map(\.state) == [.pending])
        // A half of a joined file, from a process that was killed while it wrote it.
        try OutputFile("\(bench.folder)/RM_1/RC_1/PA_ada.000.mp4.new", isNew: true).write([1, 2, 3], at: 0)
        let again = try restart()
        #expect(files.contents("\(bench.folder)/RM_1/RC_1/PA_ada.000.mp4.new") == nil)
        again.finisher.workOff()
        #expect(again.books["RC_1"]?.storedFiles.map(\.name) == ["PA_ada.000.mp4"])
        #expect(try movie(bench, "PA_ada.000.mp4").tracks.map(\.samples.count) == [150, 300])
        // A file of a track that was to be removed when the process ended.
        try OutputFile("\(bench.folder)/RM_1/RC_1/TR_camera.000.mp4", isNew: true).write([1], at: 0)
        _ = try restart()
        #expect(!names(bench).contains("TR_camera.000.mp4"))
        _ = finisher
    }
}

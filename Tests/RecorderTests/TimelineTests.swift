import Logging
import MP4
import MediaControl
import Movies
import Primitives
import Rooms
import Testing

@testable import Recorder

@Suite("When each part of a recording is shown")
struct TimelineTests {
    private static let camera = TrackInfo(
        sid: "TR_video", participant: "PA_ada", identity: "ada", name: "", kind: .video, source: .camera, mid: "1")

    /// Audio of 6 s; video of 5 s that begins a second later, turned as `rotation` says.
    private func record(_ files: RecordingOptions.Files, rotation: UInt8 = 0) throws -> RecorderBench {
        let bench = try RecorderBench(indexes: true)
        bench.begin { $0.files = files }
        bench.record(6, Self.camera)
        bench.audio(0..<300)
        bench.video(0..<150, stream: 6, after: 1, rotation: rotation)
        bench.read()
        bench.audio(0..<0, stream: 6, then: [.ended])
        bench.end()
        bench.finisher?.workOff()
        return bench
    }

    private func timeline(_ bench: RecorderBench) throws -> RecordingTimeline {
        JobBooks(bench.books, settled: { _ in }).timeline(of: try #require(bench.summary))
    }

    @Test("Parts of files and of a joined file lie at the same moments", arguments: RecordingOptions.Files.allCases)
    func moments(files: RecordingOptions.Files) throws {
        let timeline = try timeline(try record(files))
        #expect(timeline.unreadable.isEmpty && timeline.parts.count == 2)
        let video = try #require(timeline.parts.first { $0.isVideo })
        let audio = try #require(timeline.parts.first { !$0.isVideo })
        #expect(video.track == "TR_video" && audio.track == "TR_camera" && video.participant == "PA_ada")
        // Of a joined file each part begins with the file, of others with itself.
        let shown = try #require(video.spans.first)
        #expect(video.spans.count == 1 && abs(shown.lowerBound - 1_000_000) < 60_000)
        #expect(abs(shown.upperBound - 6_000_000) < 60_000)
        #expect(audio.spans.first?.lowerBound == 0 && abs(timeline.length - 6_000_000) < 60_000)
        #expect(video.file == audio.file || files == .tracks)
        #expect(abs(video.stretch - 1) < 0.001)
    }

    @Test("A turned video says so", arguments: [RecordingOptions.Files.tracks, .participant])
    func rotation(files: RecordingOptions.Files) throws {
        let timeline = try timeline(try record(files, rotation: 1))
        #expect(timeline.parts.first { $0.isVideo }?.rotation == 90)
    }

    /// A room in one file, whose video is turned while it is recorded.
    private func turnedInMidCall() throws -> RecorderBench {
        let bench = try RecorderBench(indexes: true)
        bench.begin { $0.files = .room }
        bench.record(6, Self.camera)
        bench.audio(0..<400)
        bench.video(0..<150, stream: 6, after: 1)
        bench.video(150..<240, stream: 6, after: 1, rotation: 1)
        bench.read()
        bench.audio(0..<0, stream: 6, then: [.ended])
        bench.end()
        bench.finisher?.workOff()
        return bench
    }

    @Test("Of a video that is turned in mid-call each part says how it is turned, also where one file has both")
    func turned() throws {
        let bench = try turnedInMidCall()
        let videos = try timeline(bench).parts.filter(\.isVideo)
        #expect(videos.map(\.rotation).sorted() == [0, 90])
        #expect(Set(videos.map(\.file)).count == 1)
    }

    @Test("Each video of a joined file gets a file of its own with the same samples at the same moments")
    func split() throws {
        let bench = try turnedInMidCall()
        let videos = try timeline(bench).parts.filter(\.isVideo), summary = try #require(bench.summary)
        let name = try #require(videos.first?.file), folder = "\(bench.folder)/RM_1/RC_1"
        let books = JobBooks(bench.books, settled: { _ in })
        let targets = Dictionary(uniqueKeysWithValues: videos.map { ($0.stream, "JB_1.\($0.stream).mp4") })
        try #require(targets.count == 2)
        let starts = try #require(try books.split(name, into: targets, in: summary) { false })
        let joined = try #require(RecordingFile("\(folder)/\(name)"))
        let whole = try joined.readMovie()
        for (stream, target) in targets {
            let own = try #require(RecordingFile("\(folder)/\(target)"))
            let movie = try own.readMovie(), former = whole.tracks[stream]
            let track = try #require(movie.tracks.first), start = try #require(starts[stream])
            #expect(movie.tracks.count == 1 && track.rotation == former.rotation && track.format == former.format)
            #expect(track.samples.map(\.isSync) == former.samples.map(\.isSync))
            let scale = Int64(track.timescale)
            for (mine, theirs) in zip(track.samples, former.samples) {
                #expect(abs(start + (mine.time - theirs.time) * 1_000_000 / scale) <= 1_000_000 / scale + 1)
                #expect(
                    own.read(Int(mine.length), at: mine.offset) == joined.read(Int(theirs.length), at: theirs.offset))
            }
        }
        #expect(try books.split("none.mp4", into: [0: "JB_1.mp4"], in: summary) { false } == nil)
        #expect(try books.split(name, into: [9: "JB_1.mp4"], in: summary) { false } == nil)
    }

    @Test("Nothing is written into a file of its own while the recorder does not keep up")
    func splitBehindRecorder() throws {
        let bench = try record(.room)
        let videos = try timeline(bench).parts.filter(\.isVideo), summary = try #require(bench.summary)
        let name = try #require(videos.first?.file), books = JobBooks(bench.books, settled: { _ in })
        bench.books.sawLag(.seconds(1), recordings: 1)
        var asked = 0
        let starts = try books.split(name, into: [videos[0].stream: "JB_1.mp4"], in: summary) {
            asked += 1
            return asked > 1
        }
        #expect(starts == nil && asked == 2)
        #expect(RecordingFile("\(bench.folder)/RM_1/RC_1/JB_1.mp4") == nil)
    }

    @Test(
        "Files that are played together begin by their publisher's clock, where all have it and it puts none over five seconds from where it arrived",
        arguments: [
            ([7_000_000, 7_100_000], [7_000_000, 7_100_000]), ([7_000_000, nil], [1_000_000, 1_250_000]),
            ([9_000_000, 4_250_000], [9_000_000, 4_250_000]), ([9_000_000, 4_249_999], [1_000_000, 1_250_000]),
            ([0, 3_600_000_000], [1_000_000, 1_250_000]),
        ] as [([Int64?], [Int64])])
    func playedTogether(sender: [Int64?], expected: [Int64]) {
        let files = zip(sender, [1_000, 1_250] as [Int64]).map { moment, arrival in
            RecordingSummary.File(
                name: "a.mp4", codec: "opus", startMilliseconds: arrival, senderMicroseconds: moment, rtpTime: 0,
                clockRate: 48_000, rotation: 0)
        }
        #expect(RecordingSummary.starts(of: files) == expected)
    }

    @Test("A file that was deleted is named as unreadable")
    func unreadable() throws {
        let bench = try record(.tracks)
        RecordingFolder(bench.folder).remove("\(bench.folder)/RM_1/RC_1/TR_video.000.mp4")
        #expect(try timeline(bench).unreadable == ["TR_video.000.mp4"])
    }
}

@Suite("Jobs in the books of recordings")
struct JobBooksTests {
    private func ended() throws -> (bench: RecorderBench, books: JobBooks) {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        return (bench, JobBooks(bench.books, settled: { _ in }))
    }

    private func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        let size = UInt32(8 + content.count)
        let head: [UInt8] = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> UInt32($0)) }
        return head + Array(type.utf8) + content
    }

    private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test("A job's file with more samples than the server reads is as long as it was to be; one that is torn is none")
    func longFile() throws {
        let (bench, books) = try ended()
        let recording = try #require(bench.summary), path = "\(bench.folder)/RM_1/RC_1/JB_1.new.mp4"
        // 2,000,001 samples of a byte each.
        let sizes = box("stsz", [0, 0, 0, 0, 0, 0, 0, 1, 0, 0x1e, 0x84, 0x81])
        let entry = box("mp4a", zeros(28))
        let tables = box("stsd", zeros(7) + [1] + entry) + sizes
        let header = box("mdhd", zeros(15) + [1] + zeros(8))
        let handler = box("hdlr", zeros(8) + Array("soun".utf8) + zeros(13))
        let media = box("mdia", header + handler + box("minf", box("stbl", tables)))
        let movie = box("moov", box("trak", box("tkhd", zeros(15) + [1] + zeros(64)) + media))
        let type = box("ftyp", Array("isom".utf8) + zeros(4))
        try OutputFile(path, isNew: true).write(type + movie, at: 0)
        let file = try #require(books.content(of: "JB_1.new.mp4", in: recording, length: 30_000_000_000))
        #expect(file.durationMilliseconds == 30_000_000 && file.videoBitrate == nil)
        #expect(file.bytes == Int64(type.count + movie.count))
        try OutputFile(path, isNew: false).truncate(to: 20)
        #expect(books.content(of: "JB_1.new.mp4", in: recording, length: 30_000_000_000) == nil)
        #expect(bench.summary == recording)
    }

    private let job = RecordingJob(
        sid: "JB_1", recording: "RC_1", kind: .composition, layout: .grid, width: 640, height: 360,
        encoding: RecordingJob.Encoding(frameRate: 30, bitrate: 1_000_000), createdAt: 1)

    private func write(_ bench: RecorderBench, _ names: [String]) throws {
        for name in names {
            try RecordingFolder(bench.folder).replace("\(bench.folder)/RM_1/RC_1/\(name)", with: [1, 2, 3])
        }
    }

    private func names(_ bench: RecorderBench) -> [String] {
        RecordingFolder(bench.folder).names(in: "\(bench.folder)/RM_1/RC_1").filter { $0.hasPrefix("JB_") }
    }

    @Test("A job stands in the sidecar; its file is readable, counts, and goes with it, while the recording's own stay")
    func file() throws {
        let (bench, books) = try ended()
        let own = try #require(bench.summary).bytes
        #expect(books.add(job) && bench.written["RC_1"]?.jobs == [job])
        try write(bench, ["JB_1.mp4", "JB_1.0.mp4", "JB_1.list", "JB_1-0.log.mbtree"])
        #expect(
            books.change(job, isKept: true) {
                $0.state = .finished
                $0.file = RecordingJob.File(
                    name: "JB_1.mp4", bytes: 3, durationMilliseconds: 1_000, videoBitrate: nil)
            })
        let made = try #require(books.all.first)
        books.clear(made, of: try #require(bench.summary))
        #expect(names(bench) == ["JB_1.mp4"])
        #expect(bench.summary?.bytes == own + 3)
        #expect(bench.summary?.storedFiles.map(\.name) == ["TR_camera.000.mp4"])
        #expect(bench.summary?.readableFiles.map(\.name) == ["TR_camera.000.mp4", "JB_1.mp4"])
        books.remove(made)
        #expect(names(bench).isEmpty && books.all.isEmpty && bench.summary?.bytes == own)
    }

    @Test("After a restart what was half done is deleted, what is whole stays, and the job is still there")
    func restart() throws {
        let (bench, books) = try ended()
        var done = job
        done.sid = "JB_2"
        done.file = RecordingJob.File(name: "JB_2.mp4", bytes: 3, durationMilliseconds: 1, videoBitrate: nil)
        #expect(books.add(job) && books.add(done))
        try write(bench, ["JB_1.0.mp4", "JB_1.new.mp4", "JB_1.list", "JB_2.mp4"])
        var configuration = RecorderConfiguration(directory: bench.folder)
        configuration.reserveBytes = 0
        let again = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        #expect(names(bench) == ["JB_2.mp4"])
        #expect(again["RC_1"]?.jobs?.map(\.sid) == ["JB_1", "JB_2"])
    }

    @Test("A recording that is deleted takes its jobs and their files with it, also those that come later")
    func deleted() throws {
        let (bench, books) = try ended()
        let summary = try #require(bench.summary)
        #expect(books.add(job) && bench.books.delete("RC_1"))
        #expect(!books.add(job) && !books.change(job, isKept: true) { _ in } && books.all.isEmpty)
        try RecordingFolder(bench.folder).make("\(bench.folder)/RM_1/RC_1")
        try write(bench, ["JB_1.0.mp4"])
        books.clear(job, of: summary)
        #expect(RecordingFolder(bench.folder).recordings().isEmpty)
    }

    @Test("What a job has made is uploaded, and the sidecar once more after it")
    func uploads() throws {
        let (bench, books) = try ended()
        bench.books.addUploads("RC_1") { $0 }
        let former = try #require(bench.summary?.uploads?.map(\.name))
        #expect(former.last == "recording.json")
        for upload in bench.summary?.uploads ?? [] {
            bench.books.uploaded(upload.name, of: try #require(bench.summary), bytes: 1)
        }
        #expect(bench.summary?.isUploaded == true)
        #expect(books.add(job))
        try write(bench, ["JB_1.mp4"])
        _ = books.change(job, isKept: true) {
            $0.file = RecordingJob.File(name: "JB_1.mp4", bytes: 3, durationMilliseconds: 1, videoBitrate: nil)
        }
        bench.books.addUploads("RC_1") { $0 }
        #expect(bench.summary?.uploads?.filter { $0.state == .pending }.map(\.name) == ["JB_1.mp4", "recording.json"])
        #expect(bench.summary?.uploads?.count == former.count + 1 && bench.summary?.isUploaded == false)
    }
}

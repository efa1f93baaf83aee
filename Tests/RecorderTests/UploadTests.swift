import ObjectStorage
import Primitives
import Rooms
import Testing

@testable import Recorder

@Suite("What is uploaded of a recording")
struct UploadTests {
    private func file(_ name: String, _ change: (inout RecordingSummary.File) -> Void = { _ in })
        -> RecordingSummary.File
    {
        var file = RecordingSummary.File(
            name: name, codec: "vp8", startMilliseconds: 0, rtpTime: 0, clockRate: 90_000, rotation: 0, bytes: 1,
            samples: 1,
            index: .front)
        change(&file)
        return file
    }

    private func summary(_ files: [RecordingSummary.File], isEnded: Bool = true) -> RecordingSummary {
        var summary = RecordingSummary(
            sid: "RC_1", state: isEnded ? .ready : .recording, room: "r", roomSid: "RM_1", startedAt: 0,
            endedAt: isEnded ? 1 : nil)
        summary.tracks = [
            RecordingSummary.Track(
                sid: "TR_1", participant: "PA_1", identity: "a", name: "", source: "camera", kind: "video", files: files
            )
        ]
        return summary
    }

    @Test(
        "A file is settled when it is finished and its index is where it stays; the log and the summary follow when everything is"
    )
    func settled() {
        let done = file("a.mp4"), growing = file("b.mp4") { ($0.samples, $0.index) = (nil, nil) }
        let pending = file("c.mp4") { $0.index = .pending }, atEnd = file("d.mp4") { $0.index = .end }
        #expect(summary([done, pending, growing, atEnd], isEnded: false).settledFiles == ["a.mp4", "d.mp4"])
        #expect(summary([done, pending]).settledFiles == ["a.mp4"])
        #expect(summary([done, atEnd]).settledFiles == ["a.mp4", "d.mp4", "TR_1.jsonl", "recording.json"])
    }

    @Test("Of joined tracks the joined file is uploaded, and those of the tracks only where they stay")
    func joined() {
        var joint = summary([file("a.mp4") { ($0.part, $0.index) = (0, nil) }])
        joint.files = .participant
        joint.joined = [RecordingSummary.JoinedFile(name: "j.mp4", participant: "PA_1", part: 0)]
        #expect(joint.settledFiles.isEmpty)
        joint.joined?[0].state = .failed
        #expect(joint.settledFiles == ["a.mp4", "TR_1.jsonl", "recording.json"])
        joint.joined?[0].state = .ready
        joint.tracks[0].files[0].joined = "j.mp4"
        #expect(joint.settledFiles == ["j.mp4", "TR_1.jsonl", "recording.json"])
        // The disk let it be finished when its part was joined already.
        joint.tracks[0].files.append(file("late.mp4") { ($0.part, $0.index) = (0, nil) })
        #expect(joint.settledFiles == ["late.mp4", "j.mp4", "TR_1.jsonl", "recording.json"])
    }

    @Test("What is there is noted once; a recording is uploaded when its summary is")
    func noted() {
        var some = summary([file("a.mp4"), file("gone.mp4")])
        let names = ["a.mp4", "TR_1.jsonl", "recording.json"]
        func note(_ summary: inout RecordingSummary) -> Bool { summary.addUploads(names) { "p/" + $0 } }
        #expect(note(&some) && !note(&some))
        #expect(some.uploads?.map(\.key) == ["p/a.mp4", "p/TR_1.jsonl", "p/recording.json"])
        some.uploads?[0].state = .done
        #expect(!some.isUploaded)
        some.uploads?[2].state = .done
        #expect(some.isUploaded)
    }

    @Test("A recording with a file that the disk did not let be finished is not uploaded, although its summary is")
    func refused() {
        let refused = file("b.mp4") { ($0.samples, $0.index, $0.isUnfinished) = (nil, nil, true) }
        var some = summary([file("a.mp4"), refused])
        let names = ["a.mp4", "b.mp4", "TR_1.jsonl", "recording.json"]
        _ = some.addUploads(names) { $0 }
        #expect(some.uploads?.map(\.name) == ["a.mp4", "TR_1.jsonl", "recording.json"])
        for index in 0..<3 { some.uploads?[index].state = .done }
        #expect(!some.isUploaded)
        some.tracks[0].files[1] = file("b.mp4")
        let isNew = some.addUploads(names) { $0 }
        #expect(isNew && !some.isUploaded)
        #expect(some.uploads?.filter { $0.state == .pending }.map(\.name) == ["b.mp4", "recording.json"])
        for index in some.uploads?.indices ?? 0..<0 { some.uploads?[index].state = .done }
        #expect(some.isUploaded)
    }

    @Test("What a storage refuses with one pair of keys it gets with the next, without a restart")
    func otherKeys() throws {
        let bench = try RecorderBench { $0.storage = TestStorage.configuration }
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        let (former, storage) = (TestStorage(), TestStorage())
        former.onRequest { _ in 403 }
        let uploader = try Uploader(bench.books, former.store)
        #expect(!uploader.upload("RC_1") && former.objects.isEmpty)
        uploader.use(storage.store)
        #expect(uploader.upload("RC_1") && storage.objects.count == 3)
        #expect(bench.summary?.isUploaded == true)
    }

    @Test("Neither age nor want of space deletes what the storage does not have yet")
    func retention() throws {
        let bench = try RecorderBench {
            $0.maximumBytes = 1
            $0.keptFor = .seconds(1)
            $0.storage = .init(
                endpoint: "http://127.0.0.1:9", bucket: "b", region: "r", prefix: "", accessKey: "a", secretKey: "s")
        }
        var some = summary([file("a.mp4") { $0.bytes = 100 }])
        bench.books.add(some)
        func clean() {
            bench.books.deleteExpired(wallClock: 1_000_000, at: .zero)
            bench.books.deleteExcess()
        }
        clean()
        #expect(bench.books["RC_1"] != nil)
        _ = some.addUploads(["a.mp4", "recording.json"]) { $0 }
        for index in some.uploads?.indices ?? 0..<0 { some.uploads?[index].state = .done }
        bench.books.add(some)
        clean()
        #expect(bench.books["RC_1"] == nil)
    }

    @Test("Where nothing is to stay here, media goes when the storage has the whole recording, not before")
    func removal() throws {
        let bench = try RecorderBench { $0.keepsUploaded = false }
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        bench.books.addUploads("RC_1") { $0 }
        let recording = try #require(bench.summary)
        let files = RecordingFolder(bench.folder)
        for upload in recording.uploads ?? [] {
            #expect(files.contents(bench.path) != nil)
            bench.books.uploaded(upload.name, of: recording, bytes: 1)
        }
        #expect(files.contents(bench.path) == nil && bench.summary?.storedFiles.isEmpty == true)
        #expect(files.names(in: "\(bench.folder)/RM_1/RC_1") == ["TR_camera.jsonl", "recording.json"])
    }
}

import Glibc
import Logging
import NetworkIO
import Primitives
import Testing

@testable import MediaWorkers
@testable import Recorder

@Suite("The recorder's desk")
struct RecorderDeskTests {
    @Test("E14: gaps, frames, bytes and the publisher's clock show while a recording goes on, and a crash loses no gap")
    func live() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.pass()
        bench.audio(0..<100, then: [.anchor, .gap])
        bench.audio(150..<300)
        bench.read()
        bench.pass()
        let track = try #require(bench.summary?.tracks.first)
        #expect(bench.summary?.state == .recording)
        #expect(track.framesWritten >= 250 && track.files.first?.bytes ?? 0 > 1_000)
        #expect(track.gapCount == 1 && track.gaps.map(\.reason) == ["overload"])
        #expect(track.files.first?.senderMicroseconds == 3_899_999_998_000_000)
        #expect(bench.books.statistics.bytesWritten > 1_000)
        let onDisk = try #require(bench.written["RC_1"]?.tracks.first)
        #expect(onDisk.gapCount == 1 && onDisk.files.first?.senderMicroseconds == 3_899_999_998_000_000)
    }

    @Test("What waits is the sum of all workers' rings")
    func queue() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<10, ring: 0)
        bench.audio(0..<20, stream: 6, ring: 1)
        let waiting = bench.rings.map(\.waiting)
        #expect(waiting.allSatisfy { $0 > 0 })
        bench.read()
        #expect(bench.books.statistics.queuedBytes == waiting.reduce(0, +))
        bench.read()
        #expect(bench.books.statistics.queuedBytes == 0)
    }

    @Test("A track that is recorded again within a recording goes on in another file")
    func again() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<50, then: [.ended])
        bench.read()
        bench.record(6)
        bench.audio(100..<150, stream: 6)
        bench.read()
        bench.end(stream: 6)
        let summary = try #require(bench.summary)
        #expect(summary.tracks.flatMap(\.files).map(\.name) == ["TR_camera.000.mp4", "TR_camera.001.mp4"])
        #expect(summary.tracks.allSatisfy { $0.fault == nil } && summary.state == .ready)
    }

    @Test("A track of which only the end comes leaves its place, and its recording ends without it")
    func onlyItsEnd() throws {
        let bench = try RecorderBench()
        bench.books.places.reserve(5)
        bench.begin()
        _ = bench.desk.carryOut(.end(recording: "RC_1"), at: bench.now)
        #expect(bench.summary?.state == .recording && bench.books.places.count == 1)
        bench.audio(0..<0, then: [.ended])
        bench.read()
        #expect(bench.summary?.state == .empty && bench.books.places.count == 0)
        #expect(bench.desk.isIdle)
    }

    @Test("A clock that is set forward by an hour while a recording goes on moves neither a later track nor its end")
    func clockStep() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<50)
        bench.read()
        bench.clockStep.set(3_600_000)
        bench.record(6)
        bench.audio(100..<150, stream: 6)
        bench.read()
        bench.audio(0..<0, stream: 5, then: [.ended])
        bench.end(stream: 6)
        let summary = try #require(bench.summary), starts = summary.tracks.flatMap(\.files).map(\.startMilliseconds)
        try #require(starts.count == 2)
        #expect(starts[1] - starts[0] == 2_000)
        #expect(try #require(summary.endedAt) - summary.startedAt < 60_000)
    }

    @Test("A file that the disk did not let finish is finished at the next start; its recording has ended once")
    func finishedLater() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        let open = try #require(RecordingFolder(bench.folder).contents(bench.path))
        bench.end()
        var summary = try #require(bench.summary)
        let whole = summary
        try OutputFile(bench.path, isNew: false).truncate(to: 0)
        try OutputFile(bench.path, isNew: false).write(open, at: 0)
        summary.tracks[0].files[0].samples = nil
        summary.tracks[0].files[0].durationMilliseconds = nil
        bench.written.put(summary)
        let books = try RecordingBooks(RecorderConfiguration(directory: bench.folder), bench.codec, logger: .quiet)
        let found = try #require(books["RC_1"])
        let file = try #require(found.tracks.first?.files.first)
        #expect(file.samples ?? 0 > 100 && file.durationMilliseconds ?? 0 > 2_000)
        #expect(found.endedAt == whole.endedAt && found.ended == "stopped" && books.recovered.isEmpty)
        #expect(bench.written["RC_1"] == found)
    }

    @Test("A file that was finished when the process was killed, and not yet in the summary, is a finished file")
    func killedBehindFinishing() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.end()
        var summary = try #require(bench.summary)
        let whole = try #require(summary.tracks.first?.files.first)
        summary.tracks[0].files[0].samples = nil
        summary.tracks[0].files[0].durationMilliseconds = nil
        (summary.state, summary.endedAt, summary.ended) = (.recording, nil, nil)
        bench.written.put(summary)
        let books = try RecordingBooks(RecorderConfiguration(directory: bench.folder), bench.codec, logger: .quiet)
        let found = try #require(books["RC_1"])
        let file = try #require(found.tracks.first?.files.first)
        #expect(file.samples == whole.samples && file.durationMilliseconds == whole.durationMilliseconds)
        #expect(file.bytes == whole.bytes && file.samples == 200)
        #expect(found.state == .ready && found.ended == "crash" && !found.hasUnfinishedFiles)
    }

    @Test("A file that cannot be finished has neither samples nor a duration in the summary, and no table to move")
    func unfinished() throws {
        let bench = try RecorderBench(indexes: true)
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        try OutputFile(bench.path, isNew: false).truncate(to: 0)
        bench.end()
        let file = try #require(bench.summary?.tracks.first?.files.first)
        #expect(file.samples == nil && file.durationMilliseconds == nil && file.index == nil)
        #expect(bench.summary?.hasUnfinishedFiles == true)
    }

    @Test("The table of a file that was never finished is not reported as in front")
    func unfinishedIndex() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        let open = try #require(RecordingFolder(bench.folder).contents(bench.path))
        bench.end()
        try OutputFile(bench.path, isNew: false).truncate(to: 0)
        try OutputFile(bench.path, isNew: false).write(open, at: 0)
        var summary = try #require(bench.summary)
        summary.markForIndex()
        bench.books.save(summary)
        let finisher = try FileFinisher(bench.books)
        finisher.post("RC_1")
        finisher.workOff()
        let file = try #require(bench.summary?.tracks.first?.files.first)
        #expect(file.index == .end && file.indexFault == "disk_error")
    }

    @Test("A file that is opened for reading can be read and not written")
    func reading() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        let mark = try OutputFile(reading: bench.path).read(4, at: 4)
        #expect(mark == Array("ftyp".utf8))
        #expect(throws: SystemError.self) { try OutputFile(reading: bench.path).write([1], at: 0) }
    }

    // MARK: - Retention

    @Test(
        "A recording is kept for as long as is wanted after it ended, also where the clock was set forward or back meanwhile",
        arguments: [3_600_000, -3_600_000] as [Int64])
    func setClock(step: Int64) throws {
        let bench = try RecorderBench { $0.keptFor = .seconds(60) }
        bench.begin()
        bench.audio(0..<50)
        bench.read()
        bench.clockStep.set(step)
        bench.end()
        let ended = bench.clockStep.wallClock
        let since = try #require(bench.summary?.keptSince)
        #expect(abs(since - ended) < 30_000)
        bench.books.deleteExpired(wallClock: ended, at: bench.now)
        #expect(bench.summary != nil)
        bench.books.deleteExpired(wallClock: ended + 61_000, at: bench.now + .seconds(61))
        #expect(bench.summary == nil)
    }

    private func summary(_ number: Int, bytes: Int64, endedAt: Int64?) -> RecordingSummary {
        var summary = RecordingSummary(
            sid: "RC_\(number)", state: endedAt == nil ? .recording : .ready, room: "r", roomSid: "RM_1", startedAt: 0)
        summary.endedAt = endedAt
        summary.tracks = [
            RecordingSummary.Track(
                sid: "TR_1", participant: "PA_1", identity: "a", name: "", source: "camera", kind: "video",
                files: [
                    RecordingSummary.File(
                        name: "TR_1.000.mp4", codec: "vp8", startMilliseconds: 0, rtpTime: 0, clockRate: 90_000,
                        rotation: 0, bytes: bytes)
                ])
        ]
        return summary
    }

    @Test(
        "Beyond the space that recordings may take, those that ended first go, and never one that goes on",
        arguments: [
            (0, [1, 2, 3, 4]), (1_000, [1, 2, 3, 4]), (999, [1, 3, 4]), (700, [1, 3, 4]), (699, [1, 4]), (1, [4]),
        ] as [(Int64, [Int])])
    func space(most: Int64, kept: [Int]) throws {
        let bench = try RecorderBench { $0.maximumBytes = most }
        bench.books.add(summary(1, bytes: 100, endedAt: 30))
        bench.books.add(summary(2, bytes: 300, endedAt: 10))
        bench.books.add(summary(3, bytes: 200, endedAt: 20))
        bench.books.add(summary(4, bytes: 400, endedAt: nil))
        #expect(bench.books.statistics.storedBytes == 1_000)
        bench.books.deleteExcess()
        #expect(bench.books.all.map(\.sid).sorted() == kept.map { "RC_\($0)" })
        #expect(bench.books.statistics.deletedForSpace == UInt64(4 - kept.count))
    }

    // MARK: - The index in front

    private func finished(_ bench: RecorderBench) throws -> [UInt8] {
        bench.begin()
        bench.audio(0..<300)
        bench.read()
        bench.end()
        return try #require(RecordingFolder(bench.folder).contents(bench.path))
    }

    /// The chunks' offsets in the `co64` of `bytes`.
    private func chunks(_ bytes: [UInt8]) throws -> [Int] {
        let mark = Array("co64".utf8)
        let place = try #require(bytes.indices.dropLast(4).first { Array(bytes[$0..<($0 + 4)]) == mark })
        func number(_ offset: Int, _ count: Int) -> Int {
            bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | Int($1) }
        }
        return (0..<number(place + 8, 4)).map { number(place + 12 + 8 * $0, 8) }
    }

    private func move(_ path: String) throws {
        guard var pass = try FrontIndexPass(path) else {
            Issue.record("there is nothing to move")
            return
        }
        while !(try pass.advance()) {}
    }

    /// Begins a pass and goes no further, as when the process ends; false: there is nothing to do.
    private func begin(_ path: String) throws -> Bool {
        guard let pass = try FrontIndexPass(path) else { return false }
        _ = consume pass
        return true
    }

    @Test("A finished file gets its table in front: as long as before, every chunk the same, and once only")
    func frontIndex() throws {
        let bench = try RecorderBench()
        let before = try finished(bench)
        try move(bench.path)
        let after = try #require(RecordingFolder(bench.folder).contents(bench.path))
        #expect(after.count == before.count && Array(after[32..<36]) == Array("moov".utf8))
        let old = try chunks(before), new = try chunks(after)
        #expect(old.count > 2 && old.count == new.count)
        #expect(zip(old, new).allSatisfy { before[$0..<($0 + 100)] == after[$1..<($1 + 100)] })
        #expect(try !begin(bench.path))
        #expect(RecordingFolder(bench.folder).names(in: "\(bench.folder)/RM_1/RC_1").count == 3)
    }

    @Test("A pass that a crash ended leaves the file as it was, and the next start removes the rest of it")
    func crash() throws {
        let bench = try RecorderBench()
        let before = try finished(bench)
        #expect(try begin(bench.path))
        let place = RecordingFolder(bench.folder)
        #expect(place.contents(bench.path + FrontIndexPass.suffix) != nil)
        var summary = try #require(bench.summary)
        summary.markForIndex()
        bench.written.put(summary)
        let written = bench.written
        let books = try RecordingBooks(
            RecorderConfiguration(directory: bench.folder),
            RecordingCodec(
                encode: { Array($0.sid.utf8) }, decode: { written[String(decoding: $0, as: UTF8.self)] },
                encodeLine: { _ in [] }, decodeLine: { _ in nil }), logger: .quiet)
        #expect(place.contents(bench.path + FrontIndexPass.suffix) == nil)
        #expect(place.contents(bench.path) == before)
        #expect(books.awaitingWork == ["RC_1"])
    }

    @Test("A recorder moves the tables of what has ended; without room beside its reserve it says so in the summary")
    func indexer() throws {
        for (reserve, expected) in [(Int64(0), RecordingSummary.Index.front), (.max / 2, .end)] {
            let bench = try RecorderBench { $0.reserveBytes = reserve }
            let before = try finished(bench)
            var summary = try #require(bench.summary)
            summary.markForIndex()
            bench.books.save(summary)
            let finisher = try FileFinisher(bench.books)
            finisher.post("RC_1")
            finisher.workOff()
            let file = try #require(bench.summary?.tracks.first?.files.first)
            #expect(file.index == expected && file.indexFault == (expected == .end ? "disk_full" : nil))
            #expect(bench.written["RC_1"] == bench.summary)
            let after = try #require(RecordingFolder(bench.folder).contents(bench.path))
            #expect((after == before) == (expected == .end))
        }
    }

    @Test("A table that stays at the end for want of disk is moved once there is room, and tried every ten minutes")
    func indexerLater() throws {
        let bench = try RecorderBench()
        _ = try finished(bench)
        var summary = try #require(bench.summary)
        summary.tracks[0].files[0].index = .end
        summary.tracks[0].files[0].indexFault = "disk_full"
        let finisher = try FileFinisher(bench.books)
        let found = [0, 599, 600].map { (seconds: Int64) in
            bench.books.add(summary)
            finisher.retryRefused(at: bench.now + .seconds(seconds))
            finisher.workOff()
            return bench.summary?.tracks.first?.files.first?.index
        }
        #expect(found == [.front, .end, .front])
        #expect(bench.summary?.tracks.first?.files.first?.indexFault == nil)
    }

    @Test("A table stays at the end where a fault of the disk is the reason, and where a storage is to have the file")
    func indexerNotLater() throws {
        let bench = try RecorderBench()
        _ = try finished(bench)
        var summary = try #require(bench.summary)
        let name = summary.tracks[0].files[0].name
        for (fault, uploads) in [("disk_error", []), ("disk_full", [name])] as [(String, [String])] {
            summary.tracks[0].files[0].index = .end
            summary.tracks[0].files[0].indexFault = fault
            summary.uploads = uploads.map { RecordingSummary.Upload(name: $0, key: $0) }
            bench.books.add(summary)
            #expect(bench.books.retryRefused().isEmpty)
            #expect(bench.summary == summary)
        }
    }
}

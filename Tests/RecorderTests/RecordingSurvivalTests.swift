import Glibc
import Logging
import NetworkIO
import Primitives
import Synchronization
import Testing

@testable import MediaWorkers
@testable import Recorder

@Suite("What a recording survives: a full disk, a power loss, a clock that was set")
struct RecordingSurvivalTests {
    // MARK: - Files that the disk does not let be finished

    /// The books of the next start, at which the disk refuses to let the recording's file be finished.
    private func refusing(_ bench: RecorderBench) throws -> RecordingBooks {
        bench.end()
        var summary = try #require(bench.summary)
        summary.tracks[0].files[0].samples = nil
        summary.tracks[0].files[0].durationMilliseconds = nil
        bench.written.put(summary)
        // Whatever stands in its place, it cannot be written.
        unlink(bench.path)
        mkdir(bench.path, 0o700)
        var configuration = RecorderConfiguration(directory: bench.folder)
        configuration.reserveBytes = 0
        let books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        #expect(books["RC_1"]?.refusedFiles == 1 && books.finishRefused().isEmpty)
        return books
    }

    @Test("What the disk refuses to let finish, at the next start too, is finished as soon as it permits that")
    func finishedWithoutRestart() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        let open = try #require(RecordingFolder(bench.folder).contents(bench.path))
        let books = try refusing(bench)
        rmdir(bench.path)
        try OutputFile(bench.path, isNew: true).write(open, at: 0)
        #expect(books.finishRefused() == ["RC_1"])
        let file = try #require(books["RC_1"]?.tracks.first?.files.first)
        #expect(file.samples ?? 0 > 100 && file.isUnfinished == nil && file.index == .pending)
        #expect(bench.written["RC_1"] == books["RC_1"] && books.finishRefused().isEmpty)
    }

    @Test(
        "A file that is removed before the disk let it be finished is not waited for, unless its folder is removed, too"
    )
    func removedUnfinished() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        let books = try refusing(bench)
        rmdir(bench.path)
        let folder = "\(bench.folder)/RM_1", aside = "\(bench.folder)/RM_2"
        rename(folder, aside)
        #expect(books.finishRefused().isEmpty && books["RC_1"]?.refusedFiles == 1)
        rename(aside, folder)
        #expect(books.finishRefused() == ["RC_1"] && books["RC_1"]?.refusedFiles == 0)
    }

    @Test("A recording in progress whose summary a power loss left empty is found by the copy of it")
    func emptySummary() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        bench.books.secure()
        let folder = "\(bench.folder)/RM_1/RC_1", place = RecordingFolder(bench.folder)
        #expect(place.names(in: folder).contains("recording.copy.json"))
        try OutputFile("\(folder)/recording.json", isNew: false).truncate(to: 0)
        let configuration = RecorderConfiguration(directory: bench.folder)
        let books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        let found = try #require(books["RC_1"])
        #expect(found.ended == "crash" && found.tracks.first?.files.first?.samples ?? 0 > 100)
        #expect(!place.names(in: folder).contains("recording.copy.json"))
        #expect(try RecordingBooks(configuration, bench.codec, logger: .quiet).all == [found])
    }

    @Test("The copy of a summary goes with the end of the recording, and comes only where the summary has changed")
    func copies() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        let path = "\(bench.folder)/RM_1/RC_1/recording.copy.json", place = RecordingFolder(bench.folder)
        bench.books.secure()
        #expect(place.contents(path) != nil)
        place.remove(path)
        bench.books.secure()
        #expect(place.contents(path) == nil)
        bench.record(6)
        bench.books.secure()
        #expect(place.contents(path) != nil)
        bench.audio(0..<0, stream: 6, then: [.ended])
        bench.end()
        bench.books.secure()
        #expect(bench.summary?.state == .ready && place.contents(path) == nil)
    }

    @Test("Of a recording in progress open files and logs are brought to the disk, of one that has ended nothing")
    func growing() throws {
        let bench = try RecorderBench()
        bench.begin { $0.segmentSeconds = 2 }
        bench.audio(0..<150)
        bench.read()
        bench.pass()
        let folder = "\(bench.folder)/RM_1/RC_1", growing = bench.books.growing
        #expect(growing == ["\(folder)/TR_camera.001.mp4", "\(folder)/TR_camera.jsonl"])
        for path in growing + ["\(folder)/gone.mp4"] { bench.books.synchronize(path) }
        bench.end()
        #expect(bench.summary?.state == .ready && bench.books.growing.isEmpty)
    }

    @Test("A copy, whole or not, that a crash left behind the end of its recording is removed at the next start")
    func staleCopy() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        let folder = "\(bench.folder)/RM_1/RC_1", place = RecordingFolder(bench.folder)
        let names = place.names(in: folder)
        for name in ["recording.copy.json", "recording.copy.json.new"] {
            try OutputFile("\(folder)/\(name)", isNew: true).write([1], at: 0)
        }
        let configuration = RecorderConfiguration(directory: bench.folder)
        let books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        #expect(books["RC_1"]?.ended == "stopped" && place.names(in: folder) == names)
    }

    /// Is done once, while a summary is being encoded.
    private final class Meanwhile: Sendable {
        private let action = Mutex<(@Sendable () -> Void)?>(nil)
        func set(_ next: @escaping @Sendable () -> Void) { action.withLock { $0 = next } }
        func run() {
            let next = action.withLock { action in
                defer { action = nil }
                return action
            }
            next?()
        }
    }

    @Test("A recording that is deleted while its summary is written leaves nothing for the next start to find")
    func deletedMeanwhile() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        let meanwhile = Meanwhile(), known = bench.codec
        let codec = RecordingCodec(
            encode: {
                meanwhile.run()
                return known.encode($0)
            }, decode: known.decode, encodeLine: known.encodeLine, decodeLine: known.decodeLine)
        let books = try RecordingBooks(RecorderConfiguration(directory: bench.folder), codec, logger: .quiet)
        let place = RecordingFolder(bench.folder)
        // As if the new file had come between the deletion of the others and that of the folder, which stays then.
        meanwhile.set {
            _ = books.delete("RC_1")
            try? place.make(place.folder(room: "RM_1", recording: "RC_1"))
        }
        _ = books.change("RC_1", isKept: true) { $0.keptSince = 1 }
        #expect(books["RC_1"] == nil && place.recordings().isEmpty)
    }

    @Test("A recording that ends while a part of it is joined is on the disk as such before files are removed")
    func endedMeanwhile() throws {
        let bench = try RecorderBench()
        let meanwhile = Meanwhile(), known = bench.codec
        let codec = RecordingCodec(
            encode: {
                meanwhile.run()
                return known.encode($0)
            }, decode: known.decode, encodeLine: known.encodeLine, decodeLine: known.decodeLine)
        let books = try RecordingBooks(RecorderConfiguration(directory: bench.folder), codec, logger: .quiet)
        let summary = RecordingSummary(sid: "RC_1", state: .recording, room: "r", roomSid: "RM_1", startedAt: 0)
        var ended = summary
        (ended.state, ended.endedAt) = (.ready, 1)
        books.add(summary)
        try books.makeFolder(of: summary)
        // The recorder's thread shows its end, and waits to write it down.
        meanwhile.set { [ended] in books.show(ended) }
        let content = JoinedContent(startMilliseconds: 0, durationMilliseconds: 1, bytes: 1, names: [], tracks: [])
        let isThere = books.joined("PA_ada.000.mp4", of: summary, .success(content))
        #expect(isThere && bench.written["RC_1"]?.state == .ready)
        #expect(RecordingFolder(bench.folder).names(in: books.folder(of: summary)) == ["recording.json"])
    }

    // MARK: - A clock that was set

    @Test("Of a recording that a crash ended after the clock was set, retention begins when it was written last")
    func setClockBeforeCrash() throws {
        let bench = try RecorderBench(), month: Int64 = 30 * 86_400_000
        bench.clockStep.set(-month)
        bench.begin { $0.startedAt -= month }
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        var configuration = RecorderConfiguration(directory: bench.folder)
        configuration.keptFor = .seconds(86_400)
        let books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        let now = MonotonicClock.wallMilliseconds()
        let found = try #require(books["RC_1"])
        #expect(found.endedAt ?? 0 < now - month / 2)
        books.deleteExpired(wallClock: now, at: bench.now)
        #expect(books["RC_1"] != nil)
        books.deleteExpired(wallClock: now + 86_400_000, at: bench.now + .seconds(86_400))
        #expect(books["RC_1"] == nil)
    }

    @Test(
        "A clock that is set forward or back by a year once a recording has ended changes nothing of how long it is kept",
        arguments: [31_536_000_000, -31_536_000_000] as [Int64])
    func setClockBehindEnd(step: Int64) throws {
        let bench = try RecorderBench { $0.keptFor = .seconds(60) }
        bench.begin()
        bench.audio(0..<50)
        bench.read()
        bench.end()
        let ended = try #require(bench.summary?.retainedFrom), books = bench.books
        books.deleteExpired(wallClock: ended + 5_000, at: bench.now)
        books.deleteExpired(wallClock: ended + step, at: bench.now + .seconds(54))
        #expect(bench.summary != nil)
        books.deleteExpired(wallClock: ended + step, at: bench.now + .seconds(55))
        #expect(bench.summary == nil && books.statistics.deletedByAge == 1)
    }

    @Test("A recording that ends in the future, by a clock that was set back since, is kept for as long as one of now")
    func endInFuture() {
        var retention = Retention(.seconds(60))
        let later = RecordingSummary(
            sid: "RC_1", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: 1_000_000_000)
        let found = ([0, 59, 60] as [Int64]).map { seconds in
            retention.look(at: [later], wallClock: 0, at: MonotonicTime(milliseconds: seconds * 1_000)).expired.count
        }
        #expect(found == [0, 0, 1])
    }

    @Test(
        "A clock that is a year off at the server's start and is set within ten minutes counts for nothing",
        arguments: [30, 600] as [Int64])
    func wrongClockAtStart(rightFrom: Int64) {
        let year: Int64 = 31_536_000_000, now: Int64 = 60 * year
        let old = RecordingSummary(
            sid: "RC_1", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: now - 7_200_000)
        let young = RecordingSummary(
            sid: "RC_2", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: now - 60_000)
        for error in [year, -year] {
            var retention = Retention(.seconds(3_600), inherited: ["RC_1", "RC_2"])
            let found = ([0, 30, 590, 600, 3_540] as [Int64]).map { seconds in
                retention.look(
                    at: [old, young], wallClock: now + seconds * 1_000 + (seconds < rightFrom ? error : 0),
                    at: MonotonicTime(milliseconds: seconds * 1_000)
                ).expired.map(\.sid)
            }
            #expect(found == [[], [], [], ["RC_1"], ["RC_1", "RC_2"]])
        }
    }

    @Test(
        "What ended before the clock was set is as old as before after a restart of the server, too, where recordings are kept for a day and for ever",
        arguments: [86_400, 0] as [Int64])
    func setClockBeforeRestart(kept: Int64) throws {
        let bench = try RecorderBench { $0.keptFor = .seconds(kept) }, year: Int64 = 31_536_000_000
        bench.clockStep.set(-year)
        bench.begin { $0.startedAt -= year }
        bench.audio(0..<50)
        bench.read()
        bench.end()
        let ended = try #require(bench.summary?.retainedFrom)
        bench.books.deleteExpired(wallClock: ended + 5_000, at: bench.now)
        bench.books.deleteExpired(wallClock: ended + 7_200_000, at: bench.now + .seconds(7_195))
        #expect(bench.summary?.keptSince == nil, "a clock that goes right moves nothing")
        bench.books.deleteExpired(wallClock: ended + year + 10_800_000, at: bench.now + .seconds(10_795))
        #expect(bench.summary?.keptSince == ended + year && bench.written["RC_1"] == bench.summary)
    }

    @Test("A clock that shows 1970 from the start on, and is set hours later, moves nothing that was there before")
    func clockOfNoNetwork() {
        let ended: Int64 = 1_790_000_000_000
        let old = RecordingSummary(
            sid: "RC_1", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: ended)
        var retention = Retention(.seconds(86_400), inherited: ["RC_1"])
        let looks: [(seconds: Int64, clock: Int64)] = [(0, 0), (600, 0), (7_200, 0), (7_210, ended + 3_600_000)]
        for (seconds, clock) in looks {
            let found = retention.look(
                at: [old], wallClock: clock + seconds * 1_000, at: MonotonicTime(milliseconds: seconds * 1_000))
            #expect(found.moved.isEmpty && found.expired.isEmpty)
        }
        // The next life has the right clock from its start on.
        var next = Retention(.seconds(86_400), inherited: ["RC_1"])
        let expired = ([0, 600, 79_200] as [Int64]).map { seconds in
            next.look(
                at: [old], wallClock: ended + 7_200_000 + seconds * 1_000,
                at: MonotonicTime(milliseconds: seconds * 1_000)
            ).expired.count
        }
        #expect(expired == [0, 0, 1])
    }

    @Test("What is to be kept for ever is never deleted by age, however far ahead the clock is")
    func forever() {
        let old = RecordingSummary(
            sid: "RC_1", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: 1_790_000_000_000)
        var retention = Retention(.zero, inherited: ["RC_1"])
        let found = ([0, 600, 100_000] as [Int64]).map { seconds in
            // The year 2200.
            retention.look(
                at: [old], wallClock: 7_260_000_000_000, at: MonotonicTime(milliseconds: seconds * 1_000)
            ).expired.count
        }
        #expect(found == [0, 0, 0])
    }

    @Test("For want of space one from before a restart goes before one that ends by a clock of 1970")
    func spaceByWrongClock() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<50)
        bench.read()
        bench.end()
        let files = try #require(bench.summary).tracks
        var configuration = RecorderConfiguration(directory: bench.folder)
        configuration.maximumBytes = try #require(bench.summary?.bytes)
        let books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
        books.add(
            RecordingSummary(
                sid: "RC_2", state: .ready, room: "r", roomSid: "RM_1", startedAt: 0, endedAt: 60_000, tracks: files))
        books.deleteExcess()
        #expect(books.all.map(\.sid) == ["RC_2"])
    }

    @Test("Of one that a crash ended with a right clock it begins with its end")
    func rightClock() throws {
        let bench = try RecorderBench()
        bench.begin()
        bench.audio(0..<200)
        bench.read()
        bench.pass()
        let books = try RecordingBooks(RecorderConfiguration(directory: bench.folder), bench.codec, logger: .quiet)
        let found = try #require(books["RC_1"])
        #expect(found.keptSince == nil && found.endedAt != nil)
    }
}

import Glibc
import Logging
import MediaControl
import NetworkIO
import Primitives
import RoomService
import Rooms
import Testing

@testable import MediaWorkers
@testable import Recorder

/// A folder that is gone afterwards.
private final class TemporaryFolder {
    let path: String

    init() {
        path = "/tmp/martlet-recorder-\(UInt64.random(in: 0..<UInt64.max))"
        mkdir(path, 0o700)
    }

    deinit {
        let folder = RecordingFolder(path)
        for (room, recording) in folder.recordings() { folder.delete(room: room, recording: recording) }
        rmdir(path)
    }
}

@Suite
struct RecordRingTests {
    /// Records of packets with `count` bytes each.
    private func batch(_ count: Int, packets: Int, first: Int) -> RecordBatch {
        var batch = RecordBatch(capacity: 1 << 20)
        for index in 0..<packets {
            guard let slot = batch.reserve(count) else { break }
            for byte in 0..<count { slot[byte] = UInt8(truncatingIfNeeded: first + index) }
            batch.commit(
                RecordBatch.Header(
                    kind: .packet, length: count, stream: UInt64(first + index),
                    arrival: MonotonicTime(milliseconds: Int64(index))))
        }
        return batch
    }

    @Test("What is pushed is popped, byte for byte and in order, over many turns around the ring")
    func order() {
        let ring = RecordRing(bytes: 1)
        var content: [UInt8] = []
        var sent = 0, received = 0
        for turn in 0..<500 {
            let records = batch(1_000 + turn % 200, packets: 20, first: sent)
            ring.push(records.bytes)
            sent += 20
            while let header = ring.pop(into: &content) {
                #expect(header.stream == UInt64(received))
                #expect(header.length == 1_000 + turn % 200)
                #expect(content.count == header.length)
                #expect(content.allSatisfy { $0 == UInt8(truncatingIfNeeded: received) })
                received += 1
            }
        }
        #expect(received == sent)
        #expect(sent * 1_000 > 2 * ring.capacity)
        #expect(ring.waiting == 0)
    }

    @Test("A ring that nobody reads says that it has no room, and has ample room when half is read")
    func room() {
        let ring = RecordRing(bytes: 1)
        let records = batch(1_000, packets: 900, first: 0)
        while ring.room.room >= records.used { ring.push(records.bytes) }
        #expect(!ring.room.isAmple)
        var content: [UInt8] = []
        while !ring.room.isAmple { _ = ring.pop(into: &content) }
        #expect(ring.waiting < ring.capacity / 2)
    }
}

@Suite
struct RecordingFolderTests {
    @Test("No name that leads out of the folder is taken for a name")
    func traversal() {
        for name in [
            "..", ".", "a/b", "../x", "", "a\0b", ".hidden", "a b", "%2e%2e", String(repeating: "a", count: 241),
        ] {
            #expect(!RecordingFolder.isSafe(name), "\(name)")
        }
        #expect(RecordingFolder.isSafe("RC_abcDEF123456"))
    }
}

@Suite(.serialized)
struct RecorderTests {
    private static let track = TrackInfo(
        sid: "TR_camera", participant: "PA_ada", identity: "ada", name: "", kind: .audio, source: .microphone, mid: "0")

    private final class Shelf: @unchecked Sendable {
        // Unchecked: the recorder's thread and the test take turns under the lock.
        private var lock = pthread_mutex_t()
        private var summaries: [String: RecordingSummary] = [:]

        init() { pthread_mutex_init(&lock, nil) }

        func put(_ summary: RecordingSummary) -> [UInt8] {
            pthread_mutex_lock(&lock)
            defer { pthread_mutex_unlock(&lock) }
            summaries[summary.sid] = summary
            return Array(summary.sid.utf8)
        }

        func get(_ bytes: [UInt8]) -> RecordingSummary? {
            pthread_mutex_lock(&lock)
            defer { pthread_mutex_unlock(&lock) }
            return summaries[String(decoding: bytes, as: UTF8.self)]
        }
    }

    private let shelf = Shelf()

    private func recorder(
        _ folder: TemporaryFolder, _ ring: RecordRing, _ change: (inout RecorderConfiguration) -> Void = { _ in }
    ) throws -> FileRecorder {
        var configuration = RecorderConfiguration(directory: folder.path)
        configuration.reserveBytes = 0
        configuration.movesIndexes = false
        change(&configuration)
        return try FileRecorder(
            configuration, rings: [ring],
            codec: RecordingCodec(
                encode: { [shelf] in shelf.put($0) }, decode: { [shelf] in shelf.get($0) },
                encodeLine: { Array($0.type.utf8) }, decodeLine: { _ in nil }), logger: .quiet)
    }

    /// `packets` packets of Opus, 20 ms each, and the end where `ends`.
    private func audio(_ ring: RecordRing, packets: Int, ends: Bool) {
        var batch = RecordBatch(capacity: 1 << 20)
        let now = MonotonicClock.now()
        for index in 0..<packets {
            let type = RecordedStreamFormat.payloadType(of: .opus)
            let timestamp = UInt32(index * 960)
            let header: [UInt8] = [
                0x80, type, UInt8(index >> 8), UInt8(index & 255), UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 255),
                UInt8(timestamp >> 8 & 255), UInt8(timestamp & 255), 0, 0, 0, 1,
            ]
            let bytes = header + [0xfc, 1, 2, 3]
            guard let slot = batch.reserve(bytes.count) else { return }
            slot.copyBytes(from: bytes)
            batch.commit(
                RecordBatch.Header(
                    kind: .packet, length: bytes.count, stream: 5, arrival: now + .milliseconds(Int64(20 * index))))
        }
        if ends { _ = batch.append(RecordBatch.Header(kind: .ended, stream: 5, arrival: now)) }
        ring.push(batch.bytes)
    }

    private func begin(_ recorder: FileRecorder) {
        let info = RecordingInfo(sid: "RC_1", scope: RecordingScope(), startedAt: MonotonicClock.wallMilliseconds())
        recorder.apply(.started(info), room: "lecture", roomSID: "RM_1")
        recorder.apply(
            .track(recording: "RC_1", stream: SubscriptionID(5), track: TrackID(5), Self.track), room: "lecture",
            roomSID: "RM_1")
    }

    @Test(
        "A stopped recording has finished files that begin with the first packet after the order, and can be read and deleted"
    )
    func whole() async throws {
        let folder = TemporaryFolder(), ring = RecordRing(bytes: 1)
        let recorder = try recorder(folder, ring)
        begin(recorder)
        audio(ring, packets: 100, ends: true)
        recorder.stop()
        let summary = try #require(recorder["RC_1"])
        #expect(summary.state == .ready)
        #expect(summary.tracks.map(\.framesWritten) == [100])
        #expect(summary.tracks[0].files.map(\.name) == ["TR_camera.000.mp4"])
        #expect(summary.tracks[0].files[0].durationMilliseconds == 2_000)
        #expect(summary.tracks[0].files[0].samples == 100)
        let file = try #require(try await recorder.file("TR_camera.000.mp4", of: "RC_1"))
        let bytes = try await recorder.read(file, Int(file.length), at: 0)
        // One big mdat in place of the placeholder, and the table at the end.
        #expect(Array(bytes[28..<36]) == [0, 0, 0, 1] + Array("mdat".utf8))
        for name in ["../../secret", "recording.json"] {
            let none = try await recorder.file(name, of: "RC_1")
            #expect(none == nil)
        }
        let isDeleted = try await recorder.delete("RC_1")
        #expect(isDeleted)
        #expect(RecordingFolder(folder.path).recordings().isEmpty)
        #expect(recorder.recordings.isEmpty)
    }

    @Test(
        "A track has its place from the decision on until it has ended; what is refused stands in the summary and is counted"
    )
    func places() throws {
        let folder = TemporaryFolder(), ring = RecordRing(bytes: 1)
        let recorder = try recorder(folder, ring) { $0.maximumTracks = 1 }
        #expect(recorder.admission.refusal == nil)
        begin(recorder)
        #expect(recorder.admission.refusal == .tooManyTracks && recorder.statistics.tracks == 1)
        recorder.apply(
            .refused(recording: "RC_1", Self.track, .tooManyTracks), room: "lecture", roomSID: "RM_1")
        audio(ring, packets: 100, ends: true)
        recorder.stop()
        #expect(recorder.admission.refusal == nil && recorder.statistics.tracks == 0)
        #expect(recorder.statistics.tracksRefused == [.tooManyTracks: 1])
        let tracks = try #require(recorder["RC_1"]?.tracks)
        #expect(tracks.count == 2 && tracks.map(\.files.count).reduce(0, +) == 1)
        #expect(tracks.compactMap(\.fault) == ["too_many_tracks"])
        #expect(tracks.first { $0.fault != nil }?.files.isEmpty == true)
    }

    @Test("While more than half of a ring waits for the disk, no further track is recorded")
    func behind() throws {
        let folder = TemporaryFolder(), ring = RecordRing(bytes: 1)
        let recorder = try recorder(folder, ring)
        // From now on nobody reads the ring.
        recorder.stop()
        while ring.waiting <= ring.capacity / 2 {
            #expect(recorder.admission.refusal == nil)
            audio(ring, packets: 5_000, ends: false)
        }
        #expect(recorder.admission.refusal == .recorderBehind)
    }

    @Test("E16: what a process left open is finished at the next start, and marked")
    func afterCrash() throws {
        let folder = TemporaryFolder(), ring = RecordRing(bytes: 1)
        let first = try recorder(folder, ring)
        begin(first)
        audio(ring, packets: 200, ends: true)
        first.stop()
        // As if the process had died: the last summary says that it goes on, and the file is cut off in its last fragment.
        var summary = try #require(first["RC_1"])
        (summary.state, summary.endedAt, summary.ended) = (.recording, nil, nil)
        _ = shelf.put(summary)
        let path = "\(folder.path)/RM_1/RC_1/TR_camera.000.mp4"
        try makeFragmented(path)
        let second = try recorder(folder, RecordRing(bytes: 1))
        let found = try #require(second["RC_1"])
        #expect(found.state == .ready)
        #expect(found.ended == "crash")
        #expect(found.tracks[0].files[0].durationMilliseconds ?? 0 >= 2_900)
        second.stop()
    }

    /// How many recordings were announced as ready until the news ended, or so many were.
    private func ready(_ recorder: FileRecorder, upTo most: Int = .max) async -> Int {
        var count = 0
        for await item in recorder.news where item.event?.kind == .ready {
            count += 1
            if count == most { break }
        }
        return count
    }

    @Test(
        "A stop while files are to be joined loses no announcement: it comes before the stop or after the next start, once",
        .timeLimit(.minutes(1)))
    func stopBeforeJoining() async throws {
        let folder = TemporaryFolder(), ring = RecordRing(bytes: 1)
        let first = try recorder(folder, ring) { $0.files = .participant }
        begin(first)
        audio(ring, packets: 50, ends: true)
        first.finish()
        let before = await ready(first)
        first.stop()
        let second = try recorder(folder, RecordRing(bytes: 1)) { $0.files = .participant }
        let awaited = await before == 0 ? ready(second, upTo: 1) : 0
        second.finish()
        let after = await ready(second)
        second.stop()
        #expect(before + awaited + after == 1)
        #expect(second["RC_1"]?.joined?.map(\.state) == [.ready])
        withExtendedLifetime(folder) {}
    }

    /// Undoes the finishing of a file and tears its end.
    private func makeFragmented(_ path: String) throws {
        let file = try OutputFile(path, isNew: false)
        let header = try file.read(16, at: 28)
        let size = header[8...].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        try file.write([0, 0, 0, 16] + Array("free".utf8) + [UInt8](repeating: 0, count: 8), at: 28)
        try file.truncate(to: 28 + size - 1)
    }
}

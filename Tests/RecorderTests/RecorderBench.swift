import Glibc
import Logging
import MediaControl
import NetworkIO
import Primitives
import Rooms
import Synchronization
import TestSupport

@testable import MediaWorkers
@testable import Recorder

/// A recorder's desk without its thread: what it does is done when the call returns.
final class RecorderBench {
    let folder = "/tmp/martlet-desk-\(UInt64.random(in: 0..<UInt64.max))"
    let rings = [RecordRing(bytes: 1), RecordRing(bytes: 1)]
    let books: RecordingBooks
    let codec: RecordingCodec
    /// The last summary that was written to the disk.
    let written = Written()
    var desk: RecorderDesk
    /// What finishes files, where it was asked for: it works when the test says so.
    let finisher: FileFinisher?
    private let began: MonotonicTime
    /// By how many milliseconds the wall clock was set forward meanwhile.
    let clockStep = ClockStep()
    var now: MonotonicTime
    static let track = TrackInfo(
        sid: "TR_camera", participant: "PA_ada", identity: "ada", name: "", kind: .audio, source: .microphone, mid: "0")

    final class Written: Sendable {
        private let state = Mutex<[String: RecordingSummary]>([:])
        func put(_ summary: RecordingSummary) { state.withLock { $0[summary.sid] = summary } }
        subscript(sid: String) -> RecordingSummary? { state.withLock { $0[sid] } }
    }

    final class ClockStep: Sendable {
        private let milliseconds = Mutex<Int64>(0)
        func set(_ step: Int64) { milliseconds.withLock { $0 = step } }
        var wallClock: Int64 { MonotonicClock.wallMilliseconds() + milliseconds.withLock { $0 } }
    }

    init(indexes: Bool = false, _ change: (inout RecorderConfiguration) -> Void = { _ in }) throws {
        began = MonotonicClock.now()
        now = began
        var configuration = RecorderConfiguration(directory: folder)
        configuration.reserveBytes = 0
        change(&configuration)
        let written = written
        codec = RecordingCodec(
            encode: {
                written.put($0)
                return Array($0.sid.utf8)
            }, decode: { written[String(decoding: $0, as: UTF8.self)] }, encodeLine: { Array($0.type.utf8) },
            decodeLine: { _ in nil })
        books = try RecordingBooks(configuration, codec, logger: .quiet)
        let (_, news) = AsyncStream<RecorderThread.News>.makeStream(bufferingPolicy: .bufferingNewest(1))
        finisher = indexes ? try FileFinisher(books) : nil
        let clockStep = clockStep
        desk = RecorderDesk(books: books, finisher: finisher, news: news) { clockStep.wallClock }
    }

    deinit {
        let place = RecordingFolder(folder)
        for (room, recording) in place.recordings() { place.delete(room: room, recording: recording) }
        rmdir(folder)
    }

    var summary: RecordingSummary? { books["RC_1"] }
    var path: String { "\(folder)/RM_1/RC_1/TR_camera.000.mp4" }

    func begin(_ change: (inout RecordingSummary) -> Void = { _ in }) {
        var summary = RecordingSummary(
            sid: "RC_1", state: .recording, room: "lecture", roomSid: "RM_1",
            startedAt: MonotonicClock.wallMilliseconds())
        change(&summary)
        books.add(summary)
        _ = desk.carryOut(.begin(summary), at: now)
        record(5)
    }

    func record(_ stream: UInt64, _ track: TrackInfo = RecorderBench.track) {
        _ = desk.carryOut(
            .track(recording: "RC_1", stream: SubscriptionID(stream), track: TrackID(stream), track), at: now)
    }

    /// Packets of Opus, 20 ms each, into the ring of a worker. Their numbers are those of their sequence, too, where it does not say how that goes on.
    func audio(
        _ packets: Range<Int>, firstSequence: Int? = nil, stream: UInt64 = 5, ring: Int = 0,
        then kinds: [RecordBatch.Kind] = []
    ) {
        var batch = RecordBatch(capacity: 1 << 20)
        for index in packets {
            let timestamp = UInt32(index * 960)
            let sequence = firstSequence.map { $0 + index - packets.lowerBound } ?? index
            let bytes: [UInt8] = [
                0x80, RecordedStreamFormat.payloadType(of: .opus), UInt8(sequence >> 8), UInt8(sequence & 255),
                UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 255), UInt8(timestamp >> 8 & 255),
                UInt8(timestamp & 255), 0, 0, 0, 1, 0xfc, UInt8(index & 255), 2, 3,
            ]
            guard let slot = batch.reserve(bytes.count) else { return }
            slot.copyBytes(from: bytes)
            batch.commit(
                RecordBatch.Header(
                    kind: .packet, length: bytes.count, stream: stream,
                    arrival: began + .milliseconds(Int64(20 * index))))
        }
        for kind in kinds {
            var header = RecordBatch.Header(
                kind: kind, stream: stream, arrival: now + .milliseconds(Int64(20 * packets.upperBound)))
            if kind == .anchor {
                header.timestamp = UInt32(packets.upperBound * 960)
                header.ntp = 3_900_000_000 << 32
            }
            _ = batch.append(header)
        }
        rings[ring].push(batch.bytes)
    }

    /// Frames of VP8, 30 per second from `after` seconds on, a keyframe each second; `rotation` as the orientation extension has it.
    func video(_ frames: Range<Int>, stream: UInt64, after: Int64, rotation: UInt8 = 0) {
        var batch = RecordBatch(capacity: 1 << 20)
        for index in frames {
            let timestamp = UInt32(index * 3_000)
            let payload: [UInt8] =
                index % 30 == 0
                ? [0x10] + VP8Frame.keyframeHeader(width: 640, height: 360) + [UInt8(index & 255)] : [0x10, 1, 7, 7]
            let bytes: [UInt8] =
                [
                    0x90, 0x80 | RecordedStreamFormat.payloadType(of: .vp8), UInt8(index >> 8), UInt8(index & 255),
                    UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 255), UInt8(timestamp >> 8 & 255),
                    UInt8(timestamp & 255), 0, 0, 0, 1, 0xbe, 0xde, 0, 1, 0x10, rotation, 0, 0,
                ] + payload
            guard let slot = batch.reserve(bytes.count) else { return }
            slot.copyBytes(from: bytes)
            batch.commit(
                RecordBatch.Header(
                    kind: .packet, length: bytes.count, stream: stream,
                    arrival: began + .seconds(after) + .milliseconds(Int64(index) * 1_000 / 30)))
        }
        rings[1].push(batch.bytes)
    }

    func read() { desk.read(rings, upTo: rings.map(\.waiting)) }

    /// A second passes.
    func pass() {
        now = now + .seconds(1)
        desk.advance(to: now)
        // No thread hangs here, however long the machine takes for a test: what finishes files would wait for it.
        books.recorderLag.end()
    }

    func end(stream: UInt64 = 5) {
        audio(0..<0, stream: stream, then: [.ended])
        read()
        _ = desk.carryOut(.end(recording: "RC_1"), at: now)
    }
}

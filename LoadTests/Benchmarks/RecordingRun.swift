import Foundation
import Logging
import MediaControl
import MediaWorkers
import NetworkIO
import Primitives
import Recorder
import RoomService
import Rooms

/// `bench record FOLDER [TRACKS]`: records synthetic videos in real time until it is killed, which is its purpose.
struct RecordingRun {
    let folder: String
    let tracks: Int

    init(arguments: [String]) {
        folder = arguments.first ?? "recordings"
        tracks = arguments.dropFirst().first.flatMap { Int($0) } ?? 4
    }

    func run() throws {
        let ring = RecordRing(bytes: 1 << 24)
        var configuration = RecorderConfiguration(directory: folder)
        configuration.reserveBytes = 0
        let recorder = try FileRecorder(
            configuration, rings: [ring],
            codec: RecordingCodec(
                encode: { Self.json($0) }, decode: { try? JSONDecoder().decode(RecordingSummary.self, from: Data($0)) },
                encodeLine: { Self.json($0) }, decodeLine: { _ in nil }), logger: .quiet)
        recorder.apply(
            .started(RecordingInfo(sid: "RC_1", scope: RecordingScope(), startedAt: MonotonicClock.wallMilliseconds())),
            room: "bench", roomSID: "RM_1")
        var sources: [PacketSource] = []
        for track in 0..<tracks {
            sources.append(PacketSource(ssrc: UInt32(track), codec: .vp8))
            let info = TrackInfo(
                sid: "TR_\(track)", participant: "PA_\(track)", identity: "\(track)", name: "", kind: .video,
                source: .camera, mid: "0")
            let id = UInt64(track + 1)
            recorder.apply(
                .track(recording: "RC_1", stream: SubscriptionID(id), track: TrackID(id), info), room: "bench",
                roomSID: "RM_1")
        }
        FileHandle.standardOutput.write(Data("recording\n".utf8))
        send(from: &sources, to: ring)
    }

    /// Sends 30 frames per second of each track, for ever.
    private func send(from sources: inout [PacketSource], to ring: RecordRing) {
        let start = MonotonicClock.now()
        var batch = RecordBatch(capacity: 1 << 20)
        var frame: Int64 = 0
        while true {
            let due = start + .milliseconds(frame * 1_000 / 30)
            let wait = due - MonotonicClock.now()
            if wait > .zero { usleep(UInt32(wait.microseconds)) }
            for track in sources.indices {
                for packet in sources[track].frame(keyframe: frame % 300 == 0, sizes: ForwardBenchmarks.sizes) {
                    let bytes = RecordingBenchmarks.marked(packet, .vp8)
                    guard let slot = batch.reserve(bytes.count) else { continue }
                    slot.copyBytes(from: bytes)
                    batch.commit(
                        RecordBatch.Header(
                            kind: .packet, length: bytes.count, stream: UInt64(track + 1), arrival: MonotonicClock.now()
                        ))
                }
            }
            ring.push(batch.bytes)
            batch.removeAll(room: ring.room.room, isAmple: true)
            frame += 1
        }
    }

    private static func json(_ value: some Encodable) -> [UInt8] {
        (try? JSONEncoder().encode(value)).map { Array($0) } ?? []
    }
}

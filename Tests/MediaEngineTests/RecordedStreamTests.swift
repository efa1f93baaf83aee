import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import MediaEngine

/// What a recorder is handed.
private struct Records {
    var packets: [[UInt8]] = []
    var kinds: [RecordBatch.Kind] = []
    /// Streams that have ended.
    var ended: [UInt64] = []

    mutating func take(from engine: WorkerEngine, room: Int = .max, isAmple: Bool = true) {
        engine.handOnRecords { bytes in
            var offset = 0
            while offset < bytes.count, let header = RecordBatch.Header(.init(rebasing: bytes[offset...])) {
                kinds.append(header.kind)
                if header.kind == .ended { ended.append(header.stream) }
                let start = offset + RecordBatch.Header.length
                if header.kind == .packet { packets.append(Array(bytes[start..<(start + header.length)])) }
                offset += header.recordLength
            }
            return (room, isAmple)
        }
    }

    func headers() -> [RTPHeader] { packets.compactMap { RTPHeader($0.span.bytes) } }
}

@Suite("Tracks that are recorded, through an engine")
struct RecordedStreamTests {
    private let stream = RecordedStreamDescription(
        id: SubscriptionID(77), track: TrackID(1), keyframeInterval: .seconds(10))

    @Test("A recorder is handed a video from a requested keyframe on, in order, marked by codec; its end comes last")
    func video() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: alice)))
        var camera = VP8Encoder(ssrc: 0x100)
        var records = Records()
        for index in 0..<60 {
            for packet in camera.frame(keyframe: index == 0) { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
        }
        let asked = alice.keyframeRequests.count
        harness.apply(.record(stream))
        #expect(alice.keyframeRequests.count == asked + 1)
        for index in 0..<40 {
            for packet in camera.frame(keyframe: index == 10) { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
            records.take(from: harness.engine)
        }
        harness.apply(.endRecording(stream.id))
        records.take(from: harness.engine)
        let headers = records.headers()
        #expect(headers.count == 90)
        #expect(headers.allSatisfy { RecordedStreamFormat.codec(ofPayloadType: $0.payloadType) == .vp8 })
        #expect(zip(headers, headers.dropFirst()).allSatisfy { $0.sequenceNumber &+ 1 == $1.sequenceNumber })
        #expect(records.kinds.last == .ended)
        #expect(!harness.engine.hasRecords)
    }

    @Test(
        "E13: a recorder without room costs viewers nothing; it is handed a gap and then a keyframe when there is room again"
    )
    func noRoom() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room), bob = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: alice)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob)))
        harness.apply(.record(stream))
        var camera = VP8Encoder(ssrc: 0x100)
        var records = Records()
        for index in 0..<120 {
            for packet in camera.frame(keyframe: index % 30 == 0) { harness.send(packet, from: alice) }
            harness.run(for: .milliseconds(33))
            // Blocked from frame 35 to frame 70.
            let isBlocked = (35..<70).contains(index)
            // As a worker does.
            guard harness.engine.hasRecords else { continue }
            records.take(from: harness.engine, room: isBlocked ? 0 : .max, isAmple: !isBlocked)
        }
        #expect(bob.rtp.count == 360)
        let gap = try #require(records.kinds.firstIndex(of: .gap))
        // Frames 0 to 35, then from the keyframe 60 on, which is recent enough when there is room again.
        #expect(gap == 36 * 3)
        #expect(records.packets.count == (36 + 60) * 3)
        let headers = records.headers()
        let jump = headers[108].timestamp &- headers[107].timestamp
        #expect(jump == (60 - 35) * (headers[3].timestamp &- headers[0].timestamp))
    }

    @Test("A track is recorded once; an unknown track and a second stream are ignored")
    func once() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.audio(1, of: alice)))
        harness.apply(.record(stream))
        let ignored = harness.engine.statistics.commandsIgnored
        harness.apply(
            .record(RecordedStreamDescription(id: SubscriptionID(78), track: TrackID(1), keyframeInterval: .zero)))
        harness.apply(
            .record(RecordedStreamDescription(id: SubscriptionID(79), track: TrackID(9), keyframeInterval: .zero)))
        #expect(harness.engine.statistics.commandsIgnored == ignored + 2)
        var microphone = OpusEncoder(ssrc: 0x100)
        var records = Records()
        for _ in 0..<10 {
            harness.send(microphone.packet(), from: alice)
            harness.run(for: .milliseconds(20))
            records.take(from: harness.engine)
        }
        #expect(records.packets.count == 10)
        harness.apply(.removeTrack(TrackID(1)))
        records.take(from: harness.engine)
        #expect(records.kinds.last == .ended)
    }

    @Test(
        "A stream that cannot begin ends at once, as the first of all and without room too; a command that comes twice ends none"
    )
    func refused() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room)
        var records = Records()
        harness.apply(.record(stream))
        #expect(harness.engine.hasRecords)
        records.take(from: harness.engine, room: 0, isAmple: false)
        #expect(records.ended == [77])
        harness.apply(.addTrack(Session.audio(1, of: alice)))
        harness.apply(.record(stream))
        harness.apply(.record(stream))
        harness.apply(
            .record(RecordedStreamDescription(id: SubscriptionID(78), track: TrackID(1), keyframeInterval: .zero)))
        records.take(from: harness.engine)
        #expect(records.ended == [77], "there was no room")
        #expect(harness.engine.hasRecords)
        records.take(from: harness.engine)
        #expect(records.ended == [77, 78])
        harness.apply(.removeTrack(TrackID(1)))
        records.take(from: harness.engine)
        #expect(records.ended == [77, 78, 77])
        #expect(!harness.engine.hasRecords)
    }
}

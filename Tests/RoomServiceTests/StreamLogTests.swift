import MediaControl
import Primitives
import Rooms
import Testing

@testable import RoomService

@Suite("Histories of tracks, subscriptions and rooms")
struct StreamLogTests {
    private func report(
        _ kilobits: Int64, lost: UInt64 = 0, received: UInt64 = 0, layer: Int? = 1, streams: Int = 1
    ) -> RoomReport {
        let participants = (0..<streams).map { index in
            var track = TrackStatistics(track: TrackID(UInt64(index)), kind: .video)
            var layers = [LayerStatistics(), LayerStatistics()]
            layers[0].bitrate = .kilobitsPerSecond(kilobits)
            (layers[0].packetsLost, layers[0].packetsReceived) = (lost, received)
            layers[1].bitrate = .kilobitsPerSecond(100)
            track.layers = layers
            var sent = SubscriptionStatistics(subscription: SubscriptionID(UInt64(index)))
            (sent.bitrate, sent.fractionLost, sent.layer) = (.kilobitsPerSecond(kilobits), 0.25, layer)
            let info = TrackInfo(
                sid: "TR_\(index)", participant: "PA_\(index)", identity: "ada", name: "", kind: .video,
                source: .camera, mid: "0")
            let subscription = SubscriptionInfo(
                sid: "SU_\(index)", track: "TR_\(index)", publisher: nil, subscriber: "PA_\(index)", kind: .video,
                connection: nil, mid: nil, paused: false, preference: .best, state: .active)
            return ParticipantReport(
                sid: "PA_\(index)", identity: "ada", connections: [],
                tracks: [TrackReport(info: info, statistics: track)],
                subscriptions: [SubscriptionReport(info: subscription, statistics: sent)])
        }
        let room = RoomInfo(
            sid: "RM_1", name: "R", metadata: "", topology: .routed, maxParticipants: nil, createdAt: 0)
        return RoomReport(room: room, participants: participants)
    }

    @Test("A sample has a track's bit rate and loss since the one before, and the layer that a subscription is sent")
    func samples() {
        var log = StreamLog()
        _ = log.measure(report(500, lost: 10, received: 1_000), at: 1_000, upTo: 10)
        _ = log.measure(report(300, lost: 30, received: 1_080, layer: nil), at: 6_000, upTo: 10)
        let track = log.samples(of: "TR_0")
        #expect(track.map(\.at) == [1_000, 6_000])
        #expect(track.map(\.bitrate) == [.kilobitsPerSecond(600), .kilobitsPerSecond(400)])
        #expect(track[0].loss == 0 && abs(track[1].loss - 0.2) < 1e-6 && track[1].layer == nil)
        let subscription = log.samples(of: "SU_0")
        #expect(subscription.map(\.layer) == [1, nil] && subscription.map(\.loss) == [0.25, 0.25])
        #expect(
            log.roomSamples == [
                RoomSample(
                    at: 1_000, participants: 1, tracks: 1, subscriptions: 1, uplink: .kilobitsPerSecond(600),
                    downlink: .kilobitsPerSecond(500)),
                RoomSample(
                    at: 6_000, participants: 1, tracks: 1, subscriptions: 1, uplink: .kilobitsPerSecond(400),
                    downlink: .kilobitsPerSecond(300)),
            ])
    }

    @Test(
        "While a backup codec is sent, in either order, a track is reported once, and its samples have both encodings")
    func backup() throws {
        var info = TrackInfo(
            sid: "TR_0", participant: "PA_0", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        info.codec = .vp9
        let encodings = zip([Codec.vp9, .vp8], [Int64(500), 200]).map { codec, kilobits in
            var encoding = TrackStatistics(track: TrackID(UInt64(kilobits)), kind: .video)
            var layer = LayerStatistics()
            layer.bitrate = .kilobitsPerSecond(kilobits)
            (encoding.codec, encoding.layers) = (codec, [layer])
            return encoding
        }
        for order in [encodings, encodings.reversed()] {
            var one = ParticipantReport(sid: "PA_0", identity: "ada", connections: [], tracks: [], subscriptions: [])
            for encoding in order { one.add(encoding, of: info) }
            let track = try #require(one.tracks.first)
            #expect(one.tracks.count == 1 && track.statistics.codec == .vp9 && track.backup?.codec == .vp8)
            var log = StreamLog()
            let whole = RoomReport(room: report(1).room, participants: [one])
            for second in [Int64(1_000), 6_000] { _ = log.measure(whole, at: second, upTo: 10) }
            #expect(log.samples(of: "TR_0").map(\.bitrate) == [.kilobitsPerSecond(700), .kilobitsPerSecond(700)])
            #expect(log.roomSamples.map(\.tracks) == [1, 1])
        }
    }

    @Test("An hour is kept, oldest first; what has ended is forgotten, and begins anew")
    func hour() {
        var log = StreamLog()
        for index in 1...1_000 { _ = log.measure(report(Int64(index)), at: Int64(index) * 5_000, upTo: 10) }
        #expect(log.samples(of: "SU_0").map(\.at) == (281...1_000).map { $0 * 5_000 })
        #expect(log.roomSamples.map(\.at) == (281...1_000).map { $0 * 5_000 })
        _ = log.measure(report(1, streams: 0), at: 5_005_000, upTo: 10)
        #expect(log.samples(of: "SU_0").isEmpty && log.roomSamples.last?.participants == 0)
        _ = log.measure(report(1), at: 5_010_000, upTo: 10)
        #expect(log.samples(of: "TR_0").map(\.at) == [5_010_000])
    }

    @Test(
        "A history of an hour takes the memory that RoomService.md says: 40, 12 and 17 kB, and at most 150 kB of decisions"
    )
    func memory() {
        func kilobytes(_ bytes: Int) -> Int { (StreamLog.maxSamples * bytes + 500) / 1_000 }
        #expect(kilobytes(MemoryLayout<StaySample>.stride) == 40)
        #expect(kilobytes(MemoryLayout<StreamLog.Packed>.stride) == 12)
        #expect(kilobytes(MemoryLayout<StreamLog.PackedRoom>.stride) == 17)
        #expect(SeenDecisions.maxCount * MemoryLayout<SeenDecision>.stride < 160_000)
    }

    @Test("No more are remembered than may be, the room counted; the room's sums have all of them")
    func bound() {
        var log = StreamLog()
        #expect(log.measure(report(10, streams: 8), at: 0, upTo: 5) == 5)
        let kept = (0..<8).flatMap { ["TR_\($0)", "SU_\($0)"] }.count { !log.samples(of: $0).isEmpty }
        #expect(kept == 4 && log.roomSamples.first?.tracks == 8)
        #expect(log.measure(report(10, streams: 8), at: 5_000, upTo: 0) == 0)
        #expect(log.samples(of: "TR_0").isEmpty)
    }
}

import MediaControl
import Primitives
import TestSupport

/// Ids and payload types that differ between publisher and subscriber, so that forgetting to translate shows.
enum Session {
    static let room = RoomID(1)

    static func publishedExtensions() -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        ids[.mid] = 4
        ids[.rid] = 5
        ids[.repairedRID] = 6
        ids[.audioLevel] = 1
        ids[.absoluteSendTime] = 2
        ids[.transportSequence] = 3
        ids[.videoOrientation] = 7
        return ids
    }

    static func subscribedExtensions() -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        ids[.mid] = 9
        ids[.audioLevel] = 10
        ids[.absoluteSendTime] = 11
        ids[.transportSequence] = 12
        ids[.videoOrientation] = 13
        return ids
    }

    static func video(_ id: UInt64, of client: TestClient, rids: [String] = [], source: TrackSource = .camera)
        -> TrackDescription
    {
        TrackDescription(
            id: TrackID(id), peer: client.id, kind: .video, source: source, mid: "v\(id)",
            formats: [PayloadFormat(codec: .vp8, payloadType: 96, rtxPayloadType: 97, clockRateHz: 90_000)],
            encodings: rids.isEmpty
                ? [EncodingDescription(ssrc: UInt32(id) << 8)] : rids.map { EncodingDescription(rid: $0) },
            extensions: publishedExtensions(), feedback: [.nack, .pli, .transportCC])
    }

    static func audio(_ id: UInt64, of client: TestClient) -> TrackDescription {
        TrackDescription(
            id: TrackID(id), peer: client.id, kind: .audio, source: .microphone, mid: "a\(id)",
            formats: [PayloadFormat(codec: .opus, payloadType: 111, rtxPayloadType: nil, clockRateHz: 48_000)],
            encodings: [EncodingDescription(ssrc: UInt32(id) << 8)], extensions: publishedExtensions(), feedback: [])
    }

    static func subscribe(
        _ id: UInt64, to track: UInt64?, by client: TestClient, kind: MediaKind = .video, rtx: Bool = true,
        codecs: [PayloadFormat]? = nil
    ) -> SubscriptionDescription {
        let video = PayloadFormat(codec: .vp8, payloadType: 120, rtxPayloadType: rtx ? 121 : nil, clockRateHz: 90_000)
        let audio = PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000)
        return SubscriptionDescription(
            id: SubscriptionID(id), peer: client.id, track: track.map { TrackID($0) }, kind: kind, mid: "s\(id)",
            ssrc: 0xa000_0000 | UInt32(id), rtxSSRC: rtx && kind == .video ? 0xb000_0000 | UInt32(id) : nil,
            cname: "cname-\(id)", formats: codecs ?? [kind == .video ? video : audio],
            extensions: subscribedExtensions(),
            feedback: kind == .video ? [.nack, .pli, .transportCC] : [.transportCC])
    }
}

/// A microphone: one Opus packet each 20 ms.
struct OpusEncoder {
    var ssrc: UInt32
    var sequence: UInt16 = 5
    var timestamp: UInt32 = 9_000
    var level: UInt8 = 30

    mutating func packet(ticks: UInt32 = 960) -> [UInt8] {
        defer {
            sequence &+= 1
            timestamp &+= ticks
        }
        return TestPacket(
            ssrc: ssrc, payloadType: 111, sequence: sequence, timestamp: timestamp,
            payload: [0x78] + [UInt8](repeating: 0x5a, count: 60), extensions: [(1, [0x80 | level])]
        ).bytes
    }
}

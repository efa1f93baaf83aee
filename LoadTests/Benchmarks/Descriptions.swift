import MediaControl
import Primitives

/// What a session of browsers negotiates, flattened: header extensions, formats, feedback.
enum Descriptions {
    static let room = RoomID(1)

    /// Ids on the publisher's side (`shift` 0) and, different, on the subscribers' side. Only AV1 has dependency descriptors.
    static func extensions(shift: UInt8, _ codec: Codec) -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        ids[.audioLevel] = 1 + shift
        ids[.absoluteSendTime] = 2 + shift
        ids[.transportSequence] = 3 + shift
        ids[.mid] = 4 + shift
        if codec == .av1 { ids[.dependencyDescriptor] = 5 + shift }
        return ids
    }

    static func track(_ id: UInt64, kind: MediaKind, of peer: UInt64, codec: Codec = .vp8) -> TrackDescription {
        let isVideo = kind == .video
        return TrackDescription(
            id: TrackID(id), peer: PeerID(peer), kind: kind, source: isVideo ? .camera : .microphone, mid: "\(id)",
            formats: [
                isVideo
                    ? PayloadFormat(codec: codec, payloadType: 96, rtxPayloadType: 97, clockRateHz: 90_000)
                    : PayloadFormat(codec: .opus, payloadType: 111, rtxPayloadType: nil, clockRateHz: 48_000)
            ], encodings: [EncodingDescription(ssrc: UInt32(id) << 8)], extensions: extensions(shift: 0, codec),
            feedback: isVideo ? [.nack, .pli, .transportCC] : [.transportCC])
    }

    static func subscription(
        _ id: UInt64, to track: UInt64, kind: MediaKind, by peer: UInt64, codec: Codec = .vp8
    ) -> SubscriptionDescription {
        let isVideo = kind == .video
        return SubscriptionDescription(
            id: SubscriptionID(id), peer: PeerID(peer), track: TrackID(track), kind: kind, mid: "\(track)",
            ssrc: 0xa000_0000 | UInt32(id), rtxSSRC: isVideo ? 0xb000_0000 | UInt32(id) : nil, cname: "bench",
            formats: [
                isVideo
                    ? PayloadFormat(codec: codec, payloadType: 120, rtxPayloadType: 121, clockRateHz: 90_000)
                    : PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000)
            ], extensions: extensions(shift: 5, codec),
            feedback: isVideo ? [.nack, .pli, .transportCC] : [.transportCC])
    }
}

import MediaControl
import Primitives

extension FuzzRoom {
    /// What the publisher sends, one track a codec.
    enum Stream: UInt64, CaseIterable {
        case audio = 1
        case vp8, vp9, h264, av1

        /// Extension ids as the publisher has them: the order of `HeaderExtension`, from 1.
        static let published = ids { UInt8($0) + 1 }
        /// As the subscriber has them: others, and one of them not at all.
        static let subscribed = ids { $0 < 14 ? 14 - UInt8($0) : 0 }

        private static func ids(_ id: (Int) -> UInt8) -> HeaderExtensionIDs {
            var ids = HeaderExtensionIDs()
            for (index, meaning) in HeaderExtension.allCases.enumerated() { ids[meaning] = id(index) }
            return ids
        }

        func payloadType(isRetransmission: Bool, isRedundant: Bool) -> UInt8 {
            let formats = track.formats
            if self == .audio { return isRedundant ? formats[1].payloadType : formats[0].payloadType }
            return isRetransmission ? formats[0].rtxPayloadType ?? 0 : formats[0].payloadType
        }

        func ssrc(layer: Int, isRetransmission: Bool) -> UInt32 {
            UInt32(rawValue) << 8 | (self == .vp8 ? UInt32(layer) : 0) | (isRetransmission ? 0x80 : 0)
        }

        private func formats(_ base: UInt8) -> [PayloadFormat] {
            func video(_ codec: Codec, _ variant: String = "") -> [PayloadFormat] {
                [
                    PayloadFormat(
                        codec: codec, payloadType: base, rtxPayloadType: base + 1, clockRateHz: 90_000,
                        variant: variant)
                ]
            }
            switch self {
            case .audio:
                return [
                    PayloadFormat(codec: .opus, payloadType: base, rtxPayloadType: nil, clockRateHz: 48_000),
                    PayloadFormat(codec: .red, payloadType: base + 1, rtxPayloadType: nil, clockRateHz: 48_000),
                ]
            case .vp8: return video(.vp8)
            case .vp9: return video(.vp9, "0")
            case .h264: return video(.h264, "baseline/1")
            case .av1: return video(.av1, "0")
            }
        }

        var track: TrackDescription {
            let encodings: [EncodingDescription] =
                self == .vp8
                ? ["q", "h", "f"].map { EncodingDescription(rid: $0) }
                : [
                    EncodingDescription(
                        ssrc: ssrc(layer: 0, isRetransmission: false), rtxSSRC: ssrc(layer: 0, isRetransmission: true))
                ]
            return TrackDescription(
                id: TrackID(rawValue), peer: FuzzRoom.Member.publisher.id, kind: self == .audio ? .audio : .video,
                source: self == .h264 ? .screen : .camera, mid: "\(rawValue)",
                formats: formats(96 + 2 * UInt8(rawValue)),
                encodings: encodings, extensions: Self.published, feedback: [.nack, .pli, .fir, .transportCC])
        }

        var subscription: SubscriptionDescription {
            SubscriptionDescription(
                id: SubscriptionID(rawValue), peer: FuzzRoom.Member.subscriber.id, track: TrackID(rawValue),
                kind: self == .audio ? .audio : .video, mid: "s\(rawValue)", ssrc: 0xa000_0000 | UInt32(rawValue),
                rtxSSRC: self == .audio ? nil : 0xb000_0000 | UInt32(rawValue), cname: "c",
                // A subscriber without RED: it is taken apart (G7).
                formats: self == .audio ? [formats(110)[0]] : formats(110 + 2 * UInt8(rawValue)),
                extensions: Self.subscribed, feedback: [.nack, .pli, .fir, .transportCC])
        }
    }
}

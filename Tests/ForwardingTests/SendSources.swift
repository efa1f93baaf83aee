import MediaControl
import Primitives
import TestSupport

/// Descriptions for tests of the sending side; ids differ on both sides, so that forgetting to translate shows.
enum SendSession {
    static func ids(_ pairs: [(HeaderExtension, UInt8)]) -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        for (meaning, id) in pairs { ids[meaning] = id }
        return ids
    }

    static func track(
        _ id: UInt64 = 1, kind: MediaKind = .video, layers: Int = 1, formats: [PayloadFormat] = [vp8],
        extensions: [(HeaderExtension, UInt8)] = [(.videoOrientation, 7)]
    ) -> TrackDescription {
        TrackDescription(
            id: TrackID(id), peer: PeerID(1), kind: kind, source: kind == .video ? .camera : .microphone, mid: "m\(id)",
            formats: formats,
            encodings: (0..<layers).map {
                EncodingDescription(rid: layers > 1 ? ["q", "h", "f"][$0] : nil, ssrc: UInt32(id) << 8 | UInt32($0))
            },
            extensions: ids(extensions), feedback: [.nack, .pli])
    }

    static func subscription(
        kind: MediaKind = .video, formats: [PayloadFormat] = [subscribedVP8], rtx: Bool = true, mid: String = "7",
        extensions: [(HeaderExtension, UInt8)] = [(.videoOrientation, 3)], preference: LayerPreference = .best
    ) -> SubscriptionDescription {
        SubscriptionDescription(
            id: SubscriptionID(9), peer: PeerID(2), track: nil, kind: kind, mid: mid, ssrc: 0xcafe_0001,
            rtxSSRC: rtx ? 0xcafe_0002 : nil, cname: "c", formats: formats, extensions: ids(extensions),
            feedback: [.nack, .pli],
            preference: preference)
    }

    static let vp8 = PayloadFormat(codec: .vp8, payloadType: 96, rtxPayloadType: 97, clockRateHz: 90_000)
    static let subscribedVP8 = PayloadFormat(codec: .vp8, payloadType: 120, rtxPayloadType: 121, clockRateHz: 90_000)
    static let h264 = PayloadFormat(
        codec: .h264, payloadType: 102, rtxPayloadType: 103, clockRateHz: 90_000, variant: "42e0")
    static let vp9 = PayloadFormat(codec: .vp9, payloadType: 98, rtxPayloadType: 99, clockRateHz: 90_000)
    static let av1 = PayloadFormat(codec: .av1, payloadType: 45, rtxPayloadType: 46, clockRateHz: 90_000)
    static let opus = PayloadFormat(codec: .opus, payloadType: 111, rtxPayloadType: nil, clockRateHz: 48_000)
    static let red = PayloadFormat(codec: .red, payloadType: 63, rtxPayloadType: nil, clockRateHz: 48_000)
}

extension VP8Encoder {
    /// Three layers with numbers that have nothing to do with each other; all are sending already.
    static func simulcast(_ id: UInt32 = 1) -> [VP8Encoder] {
        let sequences: [UInt16] = [65_000, 65_200, 65_400]
        let timestamps: [UInt32] = [0xffff_0000, 0xffff_7777, 0x1000]
        let pictures: [UInt16] = [32_700, 22_700, 12_700]
        let indices: [UInt8] = [250, 150, 50]
        return (0..<3).map { (index: Int) -> VP8Encoder in
            let width = UInt16(320) << UInt16(index)
            return VP8Encoder(
                ssrc: id << 8 | UInt32(index), sequence: sequences[index], timestamp: timestamps[index],
                pictureID: pictures[index], temporalZero: indices[index], keyIndex: UInt8(10 * index), width: width,
                height: width * 9 / 16, filler: 40 + Int(width) / 20, isRunning: true)
        }
    }
}

/// Frames of Chromium's AV1 with three spatial and three temporal layers, by their dependency descriptors in hexadecimal digits.
enum AV1Frame {
    /// The first descriptor, with the structure and a mask of decode targets.
    static let structure = """
        c10001c0081485214eafffaaaa863cf0430c10c302afc0aaa0063c00430010c002a000a80006000040001d954926e082b04a0941b820ac12
        82503157f974000ca864330e222222eca8655304224230eca87753013f00b3027f016704ff02cf1f80
        """

    /// A frame of the lowest layers, in one packet: a keyframe where the descriptor has a structure.
    static func packet(_ number: UInt16, _ descriptor: String) -> [UInt8] {
        let payload =
            descriptor.count > 20
            ? "281d080087072b8195c04a60e530329809441ca20651012d4cffb3c01a00803400124fcb38" : "103461aa"
        return TestPacket(
            ssrc: 0x100, payloadType: 45, sequence: number, timestamp: UInt32(number) * 3_000, marker: true,
            payload: ClientCaptures.bytes(payload)!, extensions: [(12, ClientCaptures.bytes(descriptor)!)]
        ).bytes
    }
}

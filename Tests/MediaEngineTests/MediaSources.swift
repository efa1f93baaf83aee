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

/// An encoder that makes VP8 packets (RFC 7741): pictures of a few packets, keyframes on demand.
struct VP8Encoder {
    var ssrc: UInt32
    var mid: String?
    var rid: String?
    var sequence: UInt16 = 100
    var timestamp: UInt32 = 50_000
    var pictureID: UInt16 = 300
    var temporalZero: UInt8 = 10
    var keyIndex: UInt8 = 3
    var width: UInt16 = 640
    var height: UInt16 = 360
    var packetsAFrame = 3
    var hasStarted = false
    var orientation: UInt8?

    init(ssrc: UInt32, mid: String? = nil, rid: String? = nil) {
        self.ssrc = ssrc
        self.mid = mid
        self.rid = rid
    }

    /// The packets of the next picture, `ticks` after the last.
    mutating func frame(keyframe: Bool = false, ticks: UInt32 = 3_000, size: Int = 200) -> [[UInt8]] {
        if hasStarted {
            timestamp &+= ticks
            pictureID = (pictureID + 1) & 0x7fff
            temporalZero &+= 1
        }
        if keyframe { keyIndex = (keyIndex + 1) & 0x1f }
        hasStarted = true
        return (0..<packetsAFrame).map { part in
            var payload = VP8Frame.descriptor(
                startsFrame: part == 0, pictureID: pictureID, temporalZero: temporalZero, keyIndex: keyIndex)
            if part == 0 {
                payload += keyframe ? VP8Frame.keyframeHeader(width: width, height: height) : VP8Frame.deltaHeader
            }
            payload += [UInt8](repeating: UInt8(part + 1), count: size)
            return packet(payload, marker: part == packetsAFrame - 1)
        }
    }

    /// A packet of padding only, which uses up a number.
    mutating func padding() -> [UInt8] {
        var bytes = packet([], marker: false)
        bytes[0] |= 0x20
        return bytes + [0, 0, 0, 4]
    }

    private mutating func packet(_ payload: [UInt8], marker: Bool) -> [UInt8] {
        defer { sequence &+= 1 }
        var elements: [UInt8] = []
        if let mid { elements += [4 << 4 | UInt8(mid.utf8.count - 1)] + Array(mid.utf8) }
        if let rid { elements += [5 << 4 | UInt8(rid.utf8.count - 1)] + Array(rid.utf8) }
        if let orientation, marker { elements += [7 << 4, orientation] }
        return rtpPacket(
            ssrc: ssrc, payloadType: 96, sequence: sequence, timestamp: timestamp, marker: marker, elements: elements,
            payload: payload)
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
        return rtpPacket(
            ssrc: ssrc, payloadType: 111, sequence: sequence, timestamp: timestamp, marker: false,
            elements: [1 << 4, 0x80 | level],
            payload: [0x78] + [UInt8](repeating: 0x5a, count: 60))
    }
}

func rtpPacket(
    ssrc: UInt32, payloadType: UInt8, sequence: UInt16, timestamp: UInt32, marker: Bool, elements: [UInt8],
    payload: [UInt8]
) -> [UInt8] {
    func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) } }
    var bytes: [UInt8] = [elements.isEmpty ? 0x80 : 0x90, (marker ? 0x80 : 0) | payloadType]
    bytes += [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)] + word(timestamp) + word(ssrc)
    if !elements.isEmpty {
        var block = elements
        while block.count % 4 != 0 { block.append(0) }
        bytes += [0xbe, 0xde, 0, UInt8(block.count / 4)] + block
    }
    return bytes + payload
}

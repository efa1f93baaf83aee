public import MediaControl
public import Primitives

/// One layer of frames that look like an encoder's to everything that does not decode: payload descriptors, frame headers,
/// parameter sets, filler, and a ``MediaTrace`` in every packet.
public struct SyntheticVideo: Sendable {
    /// The largest payload: libwebrtc's packets with their headers stay below 1,200 bytes.
    static let maximumPayload = 1_100

    /// What it encodes with.
    public let codec: Codec
    /// Size of the frames; a change shows with the next keyframe.
    public var width: Int
    public var height: Int
    /// Temporal layers, 1 to 3 (VP8 and VP9), in libwebrtc's patterns.
    public var temporalLayers = 1
    /// Frames so far.
    public private(set) var frames: UInt32 = 0
    private let origin: MediaTrace.Origin
    private var pictureID: UInt16
    private var tl0PictureIndex: UInt8
    private var keyIndex: UInt8 = 0
    private var position = 0

    /// The frames of a layer; the first picture id and index are random, as in encoders.
    public init(codec: Codec, origin: MediaTrace.Origin, width: Int, height: Int, random: inout RandomSource) {
        precondition(codec.kind == .video, "audio is not video")
        self.codec = codec
        self.origin = origin
        self.width = width
        self.height = height
        pictureID = UInt16.random(in: 0...0x7fff, using: &random)
        tl0PictureIndex = UInt8.random(in: 0...255, using: &random)
    }

    /// The payloads of the next frame, about `bytes` long in all.
    public mutating func frame(isKey: Bool, bytes: Int, at now: MonotonicTime) -> [[UInt8]] {
        frames += 1
        if isKey {
            position = 0
            keyIndex = (keyIndex + 1) & 0x1f
        }
        let temporalLayer = LayerPattern.temporalLayer(at: position, of: temporalLayers)
        position += 1
        pictureID = (pictureID + 1) & 0x7fff
        if temporalLayer == 0 { tl0PictureIndex &+= 1 }
        let hasSets = codec == .h264 && isKey
        let coded = max(1, (bytes + Self.maximumPayload - 1) / Self.maximumPayload)
        let count = min(255, coded + (hasSets ? 1 : 0))
        return (0..<count).map { index in
            let head = self.head(index: index, count: count, isKey: isKey, temporalLayer: temporalLayer)
            let trace = MediaTrace(origin: origin, frame: frames, index: index, count: count, time: now)
            return finish(head, trace: trace, length: bytes / coded, isSets: hasSets && index == 0)
        }
    }

    private func head(index: Int, count: Int, isKey: Bool, temporalLayer: Int) -> [UInt8] {
        switch codec {
        case .h264: h264(index: index, count: count, isKey: isKey)
        case .vp9: vp9(index: index, count: count, isKey: isKey, temporalLayer: temporalLayer)
        default: vp8(index: index, isKey: isKey, temporalLayer: temporalLayer)
        }
    }

    private func finish(_ head: [UInt8], trace: MediaTrace, length: Int, isSets: Bool) -> [UInt8] {
        var payload = head
        trace.finish(&payload, length: isSets ? 0 : length)
        return payload
    }

    // MARK: - Heads

    /// RFC 7741 section 4.2, then RFC 6386 section 9.1.
    private func vp8(index: Int, isKey: Bool, temporalLayer: Int) -> [UInt8] {
        let head = Self.vp8Descriptor(
            startsFrame: index == 0, pictureID: pictureID, tl0PictureIndex: tl0PictureIndex,
            layer: UInt8(temporalLayer) << 6 | 0x20 | keyIndex)
        return index == 0 ? head + Self.vp8FrameHeader(isKey: isKey, width: width, height: height) : head
    }

    /// The payload descriptor with all fields (RFC 7741 section 4.2). `layer` is the byte of TID, Y and KEYIDX; frames above the lowest layer are
    /// not referred to.
    public static func vp8Descriptor(startsFrame: Bool, pictureID: UInt16, tl0PictureIndex: UInt8, layer: UInt8)
        -> [UInt8]
    {
        [
            0x80 | (startsFrame ? 0x10 : 0) | (layer >> 6 == 0 ? 0 : 0x20), 0xf0, 0x80 | UInt8(pictureID >> 8),
            UInt8(pictureID & 0xff), tl0PictureIndex, layer,
        ]
    }

    /// The header of a frame that is shown, with its size if it is a keyframe.
    public static func vp8FrameHeader(isKey: Bool, width: Int, height: Int) -> [UInt8] {
        isKey ? [0x10, 0, 0, 0x9d, 0x01, 0x2a] + littleEndian(width) + littleEndian(height) : [0x11, 0, 0]
    }

    /// RFC 9628 section 4.2: picture id, layer indices if there are layers, and the size before a keyframe.
    private func vp9(index: Int, count: Int, isKey: Bool, temporalLayer: Int) -> [UInt8] {
        let hasLayers = temporalLayers > 1
        let hasSize = isKey && index == 0
        var flags: UInt8 = 0x80 | (isKey ? 0 : 0x40) | (hasLayers ? 0x21 : 0) | (index == 0 ? 0x08 : 0)
        flags |= (index == count - 1 ? 0x04 : 0) | (hasSize ? 0x02 : 0)
        var head = [flags, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff)]
        if hasLayers { head += [UInt8(temporalLayer) << 5 | 0x10, tl0PictureIndex] }
        if hasSize { head += [0x10] + Self.bigEndian(width) + Self.bigEndian(height) }
        return head + [0x82, 0x49, 0x83, 0x42]
    }

    /// RFC 6184: an aggregate of SPS, PPS and filler before an IDR picture; frames in fragments or single units.
    private func h264(index: Int, count: Int, isKey: Bool) -> [UInt8] {
        if isKey, index == 0 {
            let sets = [Self.sequenceParameterSet, Self.pictureParameterSet].flatMap { Self.bigEndian($0.count) + $0 }
            return [0x78] + sets + Self.bigEndian(1 + MediaTrace.length) + [0x0c]
        }
        let first = isKey ? 1 : 0
        let type: UInt8 = isKey ? 5 : 1
        guard count - first > 1 else { return [0x60 | type, 0x88] }
        let head = [0x7c, (index == first ? 0x80 : 0) | (index == count - 1 ? 0x40 : 0) | type]
        return index == first ? head + [0x88] : head
    }

    static func bigEndian(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 0xff), UInt8(value & 0xff)] }
    private static func littleEndian(_ value: Int) -> [UInt8] { [UInt8(value & 0xff), UInt8(value >> 8 & 0xff)] }

    /// Constrained baseline, level 3.1, as Chromium sends it.
    static let sequenceParameterSet: [UInt8] = [
        0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0x90, 0x0f, 0x08, 0x84, 0x6a,
    ]
    static let pictureParameterSet: [UInt8] = [0x68, 0xce, 0x3c, 0x80]
}

import Primitives

/// The format of a track's samples as another program wrote it.
public enum MovieFormat: Sendable, Hashable {
    /// NAL units behind lengths of `lengthSize` bytes (1, 2 or 4); sets that are not in the samples (ISO/IEC 14496-15 section 5.3.3.1).
    case h264(lengthSize: Int, sequenceSets: [[UInt8]], pictureSets: [[UInt8]], VideoSize)
    /// Whole frames.
    case vp8(VideoSize)
    /// Whole superframes; `profile` is 0 to 3.
    case vp9(profile: UInt8, VideoSize)
    /// Temporal units of OBUs with sizes; `configuration` holds the OBUs that every sync sample may lack.
    case av1(profile: UInt8, configuration: [UInt8], VideoSize)
    /// One Opus packet each, of this many channels.
    case opus(channels: Int)
    /// Another codec, by the type of its sample entry.
    case other(BoxType)

    /// The size of a video in pixels; nil for audio and for other codecs.
    public var size: VideoSize? {
        switch self {
        case .h264(_, _, _, let size), .vp8(let size), .vp9(_, let size), .av1(_, _, let size): size
        case .opus, .other: nil
        }
    }

    /// Bytes of a sample entry for video before its boxes, and of one for audio (ISO/IEC 14496-12 sections 12.1.3 and 12.2.3).
    private static let videoFields = 78
    private static let audioFields = 28
    /// Parameter sets of each kind in `avcC`; more than any encoder makes.
    private static let maximumSets = 31

    /// Reads an entry of `stsd`; nil when it breaks its format.
    init?(_ entry: BoxReader.Box, in bytes: RawSpan) {
        switch entry.type {
        case "Opus":
            guard entry.length >= Self.audioFields else { return nil }
            self = .opus(channels: Int(bytes.readUInt16(entry.offset + 16)))
        case "avc1", "avc3", "vp08", "vp09", "av01":
            guard entry.length >= Self.videoFields else { return nil }
            let size = VideoSize(
                width: Int(bytes.readUInt16(entry.offset + 24)), height: Int(bytes.readUInt16(entry.offset + 26)))
            var boxes = BoxReader(in: entry, skipping: Self.videoFields)
            guard let format = Self.video(entry.type, size, &boxes, bytes) else { return nil }
            self = format
        default: self = .other(entry.type)
        }
    }

    private static func video(
        _ type: BoxType, _ size: VideoSize, _ boxes: inout BoxReader, _ bytes: RawSpan
    ) -> MovieFormat? {
        switch type {
        case "vp08": return .vp8(size)
        case "vp09":
            guard let box = boxes.first("vpcC", in: bytes), box.length >= 8 else { return nil }
            return .vp9(profile: bytes.readUInt8(box.offset + 4), size)
        case "av01":
            guard let box = boxes.first("av1C", in: bytes), box.length >= 4 else { return nil }
            let configuration = bytes.extracting((box.offset + 4)..<(box.offset + box.length))
            return .av1(
                profile: bytes.readUInt8(box.offset + 1) >> 5,
                configuration: configuration.withUnsafeBytes { Array($0) }, size)
        default:
            guard let box = boxes.first("avcC", in: bytes) else { return nil }
            return avc(box, size, bytes)
        }
    }

    /// `avcC`: version, profile, constraints, level, length size, then the sets, each behind 16 bits of length.
    private static func avc(_ box: BoxReader.Box, _ size: VideoSize, _ bytes: RawSpan) -> MovieFormat? {
        let end = box.offset + box.length
        guard box.length >= 7, bytes.readUInt8(box.offset) == 1 else { return nil }
        let lengthSize = Int(bytes.readUInt8(box.offset + 4) & 3) + 1
        guard lengthSize != 3 else { return nil }
        var position = box.offset + 6
        guard let sequenceSets = sets(Int(bytes.readUInt8(box.offset + 5) & 0x1f), at: &position, end: end, bytes),
            position < end
        else { return nil }
        let count = Int(bytes.readUInt8(position))
        position += 1
        guard let pictureSets = sets(count, at: &position, end: end, bytes) else { return nil }
        return .h264(lengthSize: lengthSize, sequenceSets: sequenceSets, pictureSets: pictureSets, size)
    }

    private static func sets(_ count: Int, at position: inout Int, end: Int, _ bytes: RawSpan) -> [[UInt8]]? {
        guard count <= maximumSets else { return nil }
        var sets: [[UInt8]] = []
        for _ in 0..<count {
            guard position + 2 <= end else { return nil }
            let length = Int(bytes.readUInt16(position))
            guard length > 0, position + 2 + length <= end else { return nil }
            sets.append(
                bytes.extracting((position + 2)..<(position + 2 + length)).withUnsafeBytes { Array($0) })
            position += 2 + length
        }
        return sets
    }
}

import Movies
import Primitives

extension MovieFormat {
    /// Bytes of a sample entry for video before its boxes, and of one for audio (ISO/IEC 14496-12 sections 12.1.3 and 12.2.3).
    private static let videoFields = 78
    private static let audioFields = 28

    /// Reads an entry of `stsd`; nil when it violates its format.
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
        default: self = .other(entry.type.description)
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
            guard let box = boxes.first("av1C", in: bytes) else { return nil }
            return MovieFormat(av1: bytes.extracting(box.offset..<(box.offset + box.length)), size: size)
        default:
            guard let box = boxes.first("avcC", in: bytes) else { return nil }
            return MovieFormat(avc: bytes.extracting(box.offset..<(box.offset + box.length)), size: size)
        }
    }
}

import Primitives

/// The format of a track's samples as another program wrote it.
public enum MovieFormat: Sendable, Hashable {
    /// NAL units with length prefixes of `lengthSize` bytes (1, 2 or 4); the parameter sets that are not in the samples (ISO/IEC 14496-15 section 5.3.3.1).
    case h264(lengthSize: Int, sequenceSets: [[UInt8]], pictureSets: [[UInt8]], VideoSize)
    /// Whole frames.
    case vp8(VideoSize)
    /// Whole superframes; `profile` is 0 to 3.
    case vp9(profile: UInt8, VideoSize)
    /// Temporal units of OBUs with sizes; `configuration` holds the OBUs that every sync sample may lack.
    case av1(profile: UInt8, configuration: [UInt8], VideoSize)
    /// One Opus packet each, of this many channels.
    case opus(channels: Int)
    /// Another codec, by its name in the container.
    case other(String)

    /// The size of a video in pixels; nil for audio and for other codecs.
    public var size: VideoSize? {
        switch self {
        case .h264(_, _, _, let size), .vp8(let size), .vp9(_, let size), .av1(_, _, let size): size
        case .opus, .other: nil
        }
    }

    /// Parameter sets of each kind in an AVC configuration; more than any encoder makes.
    private static let maximumSets = 31

    /// H.264 by its decoder configuration record, which MP4 (`avcC`) and Matroska (CodecPrivate) share: version, profile, constraints, level, length size,
    /// then the sets, each after its length in 16 bits. nil when it violates its format.
    public init?(avc bytes: RawSpan, size: VideoSize) {
        guard bytes.byteCount >= 7, bytes.readUInt8(0) == 1 else { return nil }
        let lengthSize = Int(bytes.readUInt8(4) & 3) + 1
        guard lengthSize != 3 else { return nil }
        var position = 6
        guard let sequenceSets = Self.sets(Int(bytes.readUInt8(5) & 0x1f), at: &position, bytes),
            position < bytes.byteCount
        else { return nil }
        let count = Int(bytes.readUInt8(position))
        position += 1
        guard let pictureSets = Self.sets(count, at: &position, bytes) else { return nil }
        self = .h264(lengthSize: lengthSize, sequenceSets: sequenceSets, pictureSets: pictureSets, size)
    }

    /// AV1 by its codec configuration record, which MP4 (`av1C`) and Matroska (CodecPrivate) share: marker and version, profile and level, flags, delay, then
    /// OBUs. nil when it is too short.
    public init?(av1 bytes: RawSpan, size: VideoSize) {
        guard bytes.byteCount >= 4 else { return nil }
        let configuration = bytes.extracting(4..<bytes.byteCount)
        self = .av1(
            profile: bytes.readUInt8(1) >> 5, configuration: configuration.withUnsafeBytes { Array($0) }, size)
    }

    private static func sets(_ count: Int, at position: inout Int, _ bytes: RawSpan) -> [[UInt8]]? {
        guard count <= maximumSets else { return nil }
        var sets: [[UInt8]] = []
        for _ in 0..<count {
            guard position + 2 <= bytes.byteCount else { return nil }
            let length = Int(bytes.readUInt16(position))
            guard length > 0, position + 2 + length <= bytes.byteCount else { return nil }
            sets.append(
                bytes.extracting((position + 2)..<(position + 2 + length)).withUnsafeBytes { Array($0) })
            position += 2 + length
        }
        return sets
    }
}

public import Movies
import Primitives

/// The format of a track's samples: what a decoder needs before the first one.
public enum SampleEntry: Sendable, Hashable {
    /// `avc1` with `avcC` (ISO/IEC 14496-15 section 5.3.3.1): samples are NAL units behind lengths of four bytes, without parameter sets.
    case h264(sequenceSets: [[UInt8]], pictureSets: [[UInt8]], VideoSize)
    /// `vp08` with `vpcC` (VP Codec ISO Media File Format Binding 1.0).
    case vp8(VideoSize)
    /// `vp09` with `vpcC`; `profile` is 0 to 3, `level` ten times the level.
    case vp9(profile: UInt8, level: UInt8, VideoSize)
    /// `av01` with `av1C` (AV1 Codec ISO Media File Format Binding 1.2). `sequenceHeader` is the OBU with its header and size.
    case av1(profile: UInt8, level: UInt8, isHighTier: Bool, sequenceHeader: [UInt8], VideoSize)
    /// `Opus` with `dOps` (Encapsulation of Opus in ISO Base Media File Format 0.6.8).
    case opus

    /// The size of a video; nil for audio.
    public var size: VideoSize? {
        switch self {
        case .h264(_, _, let size), .vp8(let size), .vp9(_, _, let size), .av1(_, _, _, _, let size): size
        case .opus: nil
        }
    }

    /// Units of time per second: the RTP clock of the codec, so that no time is rounded.
    public var timescale: UInt32 { size == nil ? 48_000 : 90_000 }

    /// The entry as a box of `stsd`.
    func write(to writer: inout BoxWriter) {
        switch self {
        case .h264(let sequenceSets, let pictureSets, let size):
            Self.video("avc1", size, &writer) { $0.box("avcC") { Self.avcC(sequenceSets, pictureSets, &$0) } }
        case .vp8(let size):
            Self.video("vp08", size, &writer) { Self.vpcC(profile: 0, level: 10, &$0) }
        case .vp9(let profile, let level, let size):
            Self.video("vp09", size, &writer) { Self.vpcC(profile: profile, level: level, &$0) }
        case .av1(let profile, let level, let isHighTier, let header, let size):
            Self.video("av01", size, &writer) { writer in
                writer.box("av1C") {
                    $0.write(UInt8(0x81))  // marker, version 1
                    $0.write(profile << 5 | level & 0x1f)
                    // 8 bits a sample, 4:2:0: what WebRTC encoders send.
                    $0.write(UInt8(isHighTier ? 0x80 : 0) | 0x0c)
                    $0.write(UInt8(0))
                    $0.write(bytes: header)
                }
            }
        case .opus: Self.opus(&writer)
        }
    }

    private static func video(
        _ type: BoxType, _ size: VideoSize, _ writer: inout BoxWriter, _ configuration: (inout BoxWriter) -> Void
    ) {
        writer.box(type) {
            $0.zeros(6)
            $0.write(UInt16(1))  // data_reference_index
            $0.zeros(16)
            $0.write(UInt16(clamping: size.width))
            $0.write(UInt16(clamping: size.height))
            $0.write(UInt32(0x48_0000))  // 72 dpi
            $0.write(UInt32(0x48_0000))
            $0.zeros(4)
            $0.write(UInt16(1))  // frame_count
            $0.zeros(32)  // compressorname
            $0.write(UInt16(24))  // depth
            $0.write(UInt16(0xffff))
            configuration(&$0)
        }
    }

    private static func avcC(_ sequenceSets: [[UInt8]], _ pictureSets: [[UInt8]], _ writer: inout BoxWriter) {
        let first = sequenceSets.first ?? []
        precondition(first.count >= 4, "avc1 needs a sequence parameter set")
        writer.write(UInt8(1))
        writer.write(bytes: first[1...3])
        writer.write(UInt8(0xff))  // Lengths of four bytes.
        writer.write(UInt8(0xe0) | UInt8(sequenceSets.count & 0x1f))
        for set in sequenceSets { Self.set(set, &writer) }
        writer.write(UInt8(truncatingIfNeeded: pictureSets.count))
        for set in pictureSets { Self.set(set, &writer) }
        // High profiles add chroma format and depths: 4:2:0 with 8 bits.
        if [100, 110, 122, 244].contains(first[1]) { writer.write(bytes: [0xfd, 0xf8, 0xf8, 0]) }
    }

    private static func set(_ set: [UInt8], _ writer: inout BoxWriter) {
        writer.write(UInt16(clamping: set.count))
        writer.write(bytes: set)
    }

    private static func vpcC(profile: UInt8, level: UInt8, _ writer: inout BoxWriter) {
        writer.box("vpcC", version: 1) {
            // 8 bits, 4:2:0 co-located, limited range; colours unspecified (2).
            $0.write(bytes: [profile, level, 0x82, 2, 2, 2, 0, 0])
        }
    }

    private static func opus(_ writer: inout BoxWriter) {
        writer.box("Opus") {
            $0.zeros(6)
            $0.write(UInt16(1))  // data_reference_index
            $0.zeros(8)
            $0.write(UInt16(2))  // channels
            $0.write(UInt16(16))  // bits
            $0.zeros(4)
            $0.write(UInt32(48_000) << 16)
            $0.box("dOps") {
                $0.write(UInt8(0))
                $0.write(UInt8(2))
                // The samples that libopus needs to settle at 48 kHz; with it, the first packet's audio begins at 0 in ffmpeg.
                $0.write(UInt16(312))
                $0.write(UInt32(48_000))
                $0.write(Int16(0))
                $0.write(UInt8(0))
            }
        }
    }
}

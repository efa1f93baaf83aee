import Primitives

/// The profile and size in a sequence parameter set (ITU-T H.264 section 7.3.2.1.1).
public struct SequenceParameterSet: Sendable, Hashable {
    /// profile_idc: 66 baseline, 77 main, 100 high.
    public let profileIDC: UInt8
    /// constraint_set flags with the reserved bits.
    public let constraintFlags: UInt8
    /// level_idc: ten times the level.
    public let levelIDC: UInt8
    /// seq_parameter_set_id, 0 to 31.
    public let id: Int
    /// Size after cropping.
    public let dimensions: FrameDimensions

    /// profile-level-id as SDP writes it, 24 bits.
    public var profileLevelID: UInt32 {
        UInt32(profileIDC) << 16 | UInt32(constraintFlags) << 8 | UInt32(levelIDC)
    }

    /// Reads a whole unit of a payload.
    public init?(_ payload: RawSpan, _ unit: H264.Unit) {
        guard unit.isWhole, unit.type == H264.sequenceParameterSet else { return nil }
        self.init(payload, offset: unit.offset, length: unit.length)
    }

    /// Reads the NAL unit (with its header) of `length` bytes at `offset`; nil when it is malformed.
    public init?(_ bytes: RawSpan, offset: Int, length: Int) {
        guard length >= 5, offset + length <= bytes.byteCount, bytes.readUInt8(offset) & 0x1f == 7 else { return nil }
        profileIDC = bytes.readUInt8(offset + 1)
        constraintFlags = bytes.readUInt8(offset + 2)
        levelIDC = bytes.readUInt8(offset + 3)
        var bits = BitReader(offset: offset + 1, length: length - 1, skipsEmulation: true)
        bits.skip(24, bytes)
        let id = bits.unsignedGolomb(bytes)
        guard id < 32 else { return nil }
        self.id = Int(id)
        var format = ChromaFormat()
        if Self.hasChromaFormat(profileIDC) {
            guard let read = ChromaFormat(&bits, bytes) else { return nil }
            format = read
        }
        _ = bits.unsignedGolomb(bytes)  // log2_max_frame_num_minus4
        guard Self.skipPictureOrder(&bits, bytes) else { return nil }
        _ = bits.unsignedGolomb(bytes)  // max_num_ref_frames
        bits.skip(1, bytes)  // gaps_in_frame_num_value_allowed_flag
        let widthInBlocks = Int(bits.unsignedGolomb(bytes)) + 1
        let heightInUnits = Int(bits.unsignedGolomb(bytes)) + 1
        let framesOnly = bits.bit(bytes)
        if !framesOnly { bits.skip(1, bytes) }  // mb_adaptive_frame_field_flag
        bits.skip(1, bytes)  // direct_8x8_inference_flag
        var crop = (left: 0, right: 0, top: 0, bottom: 0)
        if bits.bit(bytes) {
            crop.left = Int(bits.unsignedGolomb(bytes))
            crop.right = Int(bits.unsignedGolomb(bytes))
            crop.top = Int(bits.unsignedGolomb(bytes))
            crop.bottom = Int(bits.unsignedGolomb(bytes))
        }
        // 16,384 pixels are far above any level's limit and keep the sums small.
        guard !bits.isExhausted, widthInBlocks <= 1024, heightInUnits <= 1024, max(crop.left, crop.right) <= 16_384,
            max(crop.top, crop.bottom) <= 16_384
        else { return nil }
        let fields = framesOnly ? 1 : 2
        let width = 16 * widthInBlocks - format.cropWidth * (crop.left + crop.right)
        let height = 16 * heightInUnits * fields - format.cropHeight * fields * (crop.top + crop.bottom)
        guard width > 0, height > 0 else { return nil }
        dimensions = FrameDimensions(width: width, height: height)
    }

    private static func hasChromaFormat(_ profile: UInt8) -> Bool {
        switch profile {
        case 100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135: true
        default: false
        }
    }

    private static func skipPictureOrder(_ bits: inout BitReader, _ bytes: RawSpan) -> Bool {
        switch bits.unsignedGolomb(bytes) {
        case 0: _ = bits.unsignedGolomb(bytes)  // log2_max_pic_order_cnt_lsb_minus4
        case 1:
            bits.skip(1, bytes)  // delta_pic_order_always_zero_flag
            _ = bits.signedGolomb(bytes)
            _ = bits.signedGolomb(bytes)
            let count = bits.unsignedGolomb(bytes)
            guard count <= 255 else { return false }
            for _ in 0..<count { _ = bits.signedGolomb(bytes) }
        case 2: break
        default: return false
        }
        return !bits.isExhausted
    }
}

/// How many luma samples one unit of cropping is (table 6-1): 2 by 2 for 4:2:0.
private struct ChromaFormat {
    var cropWidth = 2
    var cropHeight = 2

    init() {}

    /// Reads chroma format, depths and scaling lists.
    init?(_ bits: inout BitReader, _ bytes: RawSpan) {
        let chroma = bits.unsignedGolomb(bytes)
        guard chroma <= 3 else { return nil }
        let hasSeparatePlanes = chroma == 3 && bits.bit(bytes)
        _ = bits.unsignedGolomb(bytes)  // bit_depth_luma_minus8
        _ = bits.unsignedGolomb(bytes)  // bit_depth_chroma_minus8
        bits.skip(1, bytes)  // qpprime_y_zero_transform_bypass_flag
        if bits.bit(bytes) {
            for list in 0..<(chroma == 3 ? 12 : 8) where bits.bit(bytes) {
                Self.skipScalingList(size: list < 6 ? 16 : 64, &bits, bytes)
            }
        }
        cropWidth = !hasSeparatePlanes && (chroma == 1 || chroma == 2) ? 2 : 1
        cropHeight = !hasSeparatePlanes && chroma == 1 ? 2 : 1
        if bits.isExhausted { return nil }
    }

    private static func skipScalingList(size: Int, _ bits: inout BitReader, _ bytes: RawSpan) {
        var last = 8
        var next = 8
        for _ in 0..<size where !bits.isExhausted {
            if next != 0 { next = (last + Int(bits.signedGolomb(bytes)) + 256) & 0xff }
            last = next == 0 ? last : next
        }
    }
}

extension H264 {
    /// pic_parameter_set_id of a whole unit, 0 to 255 (ITU-T H.264 section 7.3.2.2); nil where it is none or malformed.
    public static func pictureParameterSetID(_ payload: RawSpan, _ unit: Unit) -> UInt32? {
        guard unit.isWhole, unit.type == pictureParameterSet, unit.length > 1 else { return nil }
        var bits = BitReader(offset: unit.offset + 1, length: unit.length - 1, skipsEmulation: true)
        let id = bits.unsignedGolomb(payload)
        return bits.isExhausted || id > 255 ? nil : id
    }
}

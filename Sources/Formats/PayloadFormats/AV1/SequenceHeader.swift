import Primitives

/// The AV1 sequence header OBU (AV1 section 5.5.1), read as far as the largest picture size.
enum SequenceHeader {
    static func dimensions(_ bytes: RawSpan, _ offset: Int, _ length: Int) -> FrameDimensions? {
        var bits = BitReader(offset: offset, length: length)
        bits.skip(3 + 1, bytes)  // seq_profile, still_picture
        if bits.bit(bytes) {  // reduced_still_picture_header
            bits.skip(5, bytes)
        } else {
            guard skipOperatingPoints(&bits, bytes) else { return nil }
        }
        let widthBits = Int(bits.bits(4, bytes)) + 1
        let heightBits = Int(bits.bits(4, bytes)) + 1
        let width = Int(bits.bits(widthBits, bytes)) + 1
        let height = Int(bits.bits(heightBits, bytes)) + 1
        return bits.isExhausted ? nil : FrameDimensions(width: width, height: height)
    }

    private static func skipOperatingPoints(_ bits: inout BitReader, _ bytes: RawSpan) -> Bool {
        var delayLength = 0
        if bits.bit(bytes) {  // timing_info_present_flag
            bits.skip(64, bytes)
            if bits.bit(bytes) { _ = bits.unsignedGolomb(bytes) }  // uvlc() is the same code.
            if bits.bit(bytes) {  // decoder_model_info_present_flag
                delayLength = Int(bits.bits(5, bytes)) + 1
                bits.skip(32 + 5 + 5, bytes)
            }
        }
        let hasInitialDelay = bits.bit(bytes)
        let points = Int(bits.bits(5, bytes)) + 1
        for _ in 0..<points {
            bits.skip(12, bytes)  // operating_point_idc
            if bits.bits(5, bytes) > 7 { bits.skip(1, bytes) }  // seq_level_idx, seq_tier
            if delayLength > 0, bits.bit(bytes) { bits.skip(2 * delayLength + 1, bytes) }
            if hasInitialDelay, bits.bit(bytes) { bits.skip(4, bytes) }
        }
        return !bits.isExhausted
    }
}

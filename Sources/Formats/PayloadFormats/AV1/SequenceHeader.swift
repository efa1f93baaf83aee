import Primitives

extension AV1 {
    /// The sequence header OBU (AV1 section 5.5.1), read as far as the largest frame size.
    public struct SequenceParameters: Sendable, Hashable {
        /// seq_profile: 0 main, 1 high, 2 professional.
        public private(set) var profile: UInt8 = 0
        /// seq_level_idx of the first operating point.
        public private(set) var level: UInt8 = 0
        /// seq_tier of the first operating point.
        public private(set) var isHighTier = false
        /// The first operating point, which is the whole stream, has more than one spatial layer.
        public private(set) var hasSpatialLayers = false
        /// The largest frame.
        public private(set) var dimensions = FrameDimensions(width: 0, height: 0)

        /// Reads a whole OBU with header and size; nil when it is none or malformed.
        public init?(obu: RawSpan) {
            guard obu.byteCount > 1, obu.readUInt8(0) >> 3 & 0x0f == AV1.sequenceHeader else { return nil }
            let header = obu.readUInt8(0)
            var offset = header & 4 != 0 ? 2 : 1
            if header & 2 != 0, LEB128.read(obu, &offset, end: obu.byteCount) == nil { return nil }
            guard offset < obu.byteCount else { return nil }
            self.init(obu, offset, obu.byteCount - offset)
        }

        /// Reads the `length` bytes after the OBU's header.
        init?(_ bytes: RawSpan, _ offset: Int, _ length: Int) {
            var bits = BitReader(offset: offset, length: length)
            profile = UInt8(bits.bits(3, bytes))
            bits.skip(1, bytes)  // still_picture
            if bits.bit(bytes) {  // reduced_still_picture_header
                level = UInt8(bits.bits(5, bytes))
            } else {
                guard readOperatingPoints(&bits, bytes) else { return nil }
            }
            let widthBits = Int(bits.bits(4, bytes)) + 1
            let heightBits = Int(bits.bits(4, bytes)) + 1
            dimensions.width = Int(bits.bits(widthBits, bytes)) + 1
            dimensions.height = Int(bits.bits(heightBits, bytes)) + 1
            if bits.isExhausted { return nil }
        }

        private mutating func readOperatingPoints(_ bits: inout BitReader, _ bytes: RawSpan) -> Bool {
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
            for point in 0..<points {
                // operating_point_idc: a bit for each of four spatial layers, then for each of eight temporal ones.
                let spatialLayers = bits.bits(12, bytes) >> 8
                let index = UInt8(bits.bits(5, bytes))  // seq_level_idx
                let isHigh = index > 7 && bits.bit(bytes)  // seq_tier
                if point == 0 {
                    (level, isHighTier, hasSpatialLayers) = (index, isHigh, spatialLayers > 1)
                }
                if delayLength > 0, bits.bit(bytes) { bits.skip(2 * delayLength + 1, bytes) }
                if hasInitialDelay, bits.bit(bytes) { bits.skip(4, bytes) }
            }
            return !bits.isExhausted
        }
    }
}

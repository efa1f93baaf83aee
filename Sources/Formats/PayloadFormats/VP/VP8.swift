import Primitives

/// The VP8 payload descriptor (RFC 7741 section 4.2).
///
/// ```text
///       0 1 2 3 4 5 6 7
///      +-+-+-+-+-+-+-+-+
///      |X|R|N|S|R| PID |  N: not referred to; S: start of a partition
///      +-+-+-+-+-+-+-+-+
/// X:   |I|L|T|K| RSV   |
///      +-+-+-+-+-+-+-+-+
/// I:   |M| PictureID   |  7 bits, or 15 with M
///      +-+-+-+-+-+-+-+-+
/// L:   |   TL0PICIDX   |
///      +-+-+-+-+-+-+-+-+
/// T/K: |TID|Y| KEYIDX  |  Y: refers to the base layer only
///      +-+-+-+-+-+-+-+-+
/// ```
public enum VP8 {
    /// Summarises a payload; nil when it is shorter than its descriptor says or has no data.
    ///
    /// A sender that uses the dependency descriptor extension leaves picture id and layers out of the payload (libwebrtc does): then they come from
    /// `descriptor`. So does whether a keyframe starts, because the data after the payload descriptor may be encrypted end to end.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor? = nil
    ) -> PayloadSummary? {
        let count = payload.byteCount
        guard count > 0 else { return nil }
        let first = payload.readUInt8(0)
        let numbers = FrameNumbers(vp8: payload)
        guard numbers.end >= 0 else { return nil }
        var summary = PayloadSummary()
        summary.note(numbers)
        summary.isSwitchingPoint = true
        if numbers.layerOffset >= 0, payload.readUInt8(1) & 0x20 != 0 {
            let byte = payload.readUInt8(numbers.layerOffset)
            summary.temporalLayer = Int(byte >> 6)
            summary.isSwitchingPoint = byte & 0x20 != 0
        }
        let offset = numbers.end
        guard offset < count else { return nil }
        if let descriptor {
            summary.note(descriptor)
            if summary.pictureIDOffset == 0 { summary.copyTemporalLayer(of: descriptor) }
        }
        summary.isDiscardable = first & 0x20 != 0
        summary.startsFrame = first & 0x10 != 0 && first & 0x07 == 0
        summary.endsFrame = marker
        summary.endsPicture = marker
        if summary.startsFrame, descriptor?.isKeyframe ?? (payload.readUInt8(offset) & 1 == 0) {
            summary.isKeyframe = true
            summary.startsKeyframe = true
            summary.isSwitchingPoint = true
            summary.startsSpatialLayer = true
            summary.dimensions = dimensions(ofKeyframe: payload, at: offset)
        }
        return summary
    }

    /// Size in the header of a keyframe (RFC 6386 section 9.1): start code, then 14 bits each, little endian.
    private static func dimensions(ofKeyframe payload: RawSpan, at offset: Int) -> FrameDimensions? {
        guard offset + 10 <= payload.byteCount, payload.readUInt24(offset + 3) == 0x9d012a else { return nil }
        let width = payload.readUInt16(offset + 6).byteSwapped & 0x3fff
        let height = payload.readUInt16(offset + 8).byteSwapped & 0x3fff
        return FrameDimensions(width: Int(width), height: Int(height))
    }
}

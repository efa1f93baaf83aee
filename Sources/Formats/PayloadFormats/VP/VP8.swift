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
    /// A sender that uses the dependency descriptor extension leaves picture id and layers out of the payload
    /// (libwebrtc does): then they come from `descriptor`. So does whether a keyframe starts, because what is behind the payload descriptor may be
    /// encrypted end to end.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor? = nil
    ) -> PayloadSummary? {
        let count = payload.byteCount
        guard count > 0 else { return nil }
        let first = payload.readUInt8(0)
        var summary = PayloadSummary()
        var offset = 1
        if first & 0x80 != 0 {
            guard readExtension(payload, &offset, &summary) else { return nil }
        } else {
            summary.isSwitchingPoint = true
        }
        guard offset < count else { return nil }
        if let descriptor {
            summary.note(descriptor)
            if summary.pictureIDOffset == 0 { summary.takeTemporalLayer(of: descriptor) }
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

    private static func readExtension(
        _ payload: RawSpan, _ offset: inout Int, _ summary: inout PayloadSummary
    ) -> Bool {
        let count = payload.byteCount
        guard count > 1 else { return false }
        let flags = payload.readUInt8(1)
        offset = 2
        if flags & 0x80 != 0 {
            guard offset < count else { return false }
            summary.pictureIDOffset = offset
            let byte = payload.readUInt8(offset)
            summary.isLongPictureID = byte & 0x80 != 0
            if summary.isLongPictureID {
                guard offset + 1 < count else { return false }
                summary.pictureID = payload.readUInt16(offset) & 0x7fff
                offset += 2
            } else {
                summary.pictureID = UInt16(byte)
                offset += 1
            }
        }
        if flags & 0x40 != 0 {
            guard offset < count else { return false }
            summary.tl0Offset = offset
            summary.tl0PictureIndex = payload.readUInt8(offset)
            offset += 1
        }
        guard flags & 0x30 != 0 else {
            summary.isSwitchingPoint = true
            return true
        }
        guard offset < count else { return false }
        let byte = payload.readUInt8(offset)
        offset += 1
        if flags & 0x20 != 0 {
            summary.temporalLayer = Int(byte >> 6)
            summary.isSwitchingPoint = byte & 0x20 != 0
        } else {
            summary.isSwitchingPoint = true
        }
        if flags & 0x10 != 0 { summary.keyIndex = byte & 0x1f }
        return true
    }

    /// Size in the header of a keyframe (RFC 6386 section 9.1): start code, then 14 bits each, little endian.
    private static func dimensions(ofKeyframe payload: RawSpan, at offset: Int) -> PictureDimensions? {
        guard offset + 10 <= payload.byteCount, payload.readUInt24(offset + 3) == 0x9d012a else { return nil }
        let width = payload.readUInt16(offset + 6).byteSwapped & 0x3fff
        let height = payload.readUInt16(offset + 8).byteSwapped & 0x3fff
        return PictureDimensions(width: Int(width), height: Int(height))
    }
}

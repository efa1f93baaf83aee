public import Primitives

/// The numbers that a VP8 or VP9 frame carries in front of its payload, which must continue without a jump when the source of a stream changes.
///
/// ```text
/// VP8 (RFC 7741 section 4.2)              VP9 (RFC 9628 section 4.2)
///  |X|R|N|S|R| PID |                       |I|P|L|F|B|E|V|Z|
///  |I|L|T|K| RSV   |  if X                 |M| PICTURE ID  |  if I
///  |M| PictureID   |  if I, 7 or 15 bits   |  (15 bits)    |  if M
///  |  TL0PICIDX    |  if L                 | TID |U| SID |D|  if L
///  |TID|Y| KEYIDX  |  if T or K            |  TL0PICIDX    |  if L and not F
/// ```
/// Offsets count from the start of the payload; -1 stands for a field that is absent. All are absent in a payload that ends within them.
public struct FrameNumbers: Sendable {
    /// Where the picture id is.
    public var pictureOffset = -1
    /// 0x7f or 0x7fff: the bits that the number has.
    public var pictureMask: UInt16 = 0
    /// The picture id.
    public var picture: UInt16 = 0
    /// Where TL0PICIDX is.
    public var temporalZeroOffset = -1
    /// TL0PICIDX.
    public var temporalZero: UInt8 = 0
    /// Where the byte with the layer is: VP8's TID, Y and KEYIDX, VP9's TID, U, SID and D.
    public var layerOffset = -1
    /// Where KEYIDX is; it shares the byte with TID.
    public var keyIndexOffset = -1
    /// VP8's KEYIDX, 5 bits.
    public var keyIndex: UInt8 = 0
    /// The offset after all of them; -1 if the payload ends before.
    public var end = -1

    /// No numbers.
    @inlinable public init() {}

    /// Those of a VP8 payload.
    @inlinable public init(vp8 payload: RawSpan) {
        let count = payload.byteCount
        guard count > 0 else { return }
        guard payload.readUInt8(0) & 0x80 != 0 else {
            end = 1
            return
        }
        guard count > 1 else { return }
        let present = payload.readUInt8(1)
        var found = Self()
        var cursor = 2
        if present & 0x80 != 0, !found.readPictureID(payload, &cursor) { return }
        if present & 0x40 != 0 {
            guard cursor < count else { return }
            found.temporalZeroOffset = cursor
            found.temporalZero = payload.readUInt8(cursor)
            cursor += 1
        }
        if present & 0x30 != 0 {
            guard cursor < count else { return }
            found.layerOffset = cursor
            // KEYIDX has a meaning only with K.
            if present & 0x10 != 0 {
                found.keyIndexOffset = cursor
                found.keyIndex = payload.readUInt8(cursor) & 0x1f
            }
            cursor += 1
        }
        found.end = cursor
        self = found
    }

    /// Those of a VP9 payload.
    @inlinable public init(vp9 payload: RawSpan) {
        let count = payload.byteCount
        guard count > 0 else { return }
        let present = payload.readUInt8(0)
        var found = Self()
        var cursor = 1
        if present & 0x80 != 0, !found.readPictureID(payload, &cursor) { return }
        if present & 0x20 != 0 {
            guard cursor < count else { return }
            found.layerOffset = cursor
            cursor += 1
            if present & 0x10 == 0 {
                guard cursor < count else { return }
                found.temporalZeroOffset = cursor
                found.temporalZero = payload.readUInt8(cursor)
                cursor += 1
            }
        }
        found.end = cursor
        self = found
    }

    /// Reads a picture id of 7 or 15 bits; false when the payload ends in it.
    @inlinable mutating func readPictureID(_ payload: RawSpan, _ cursor: inout Int) -> Bool {
        guard cursor < payload.byteCount else { return false }
        let byte = payload.readUInt8(cursor)
        guard byte & 0x80 != 0 else {
            pictureOffset = cursor
            pictureMask = 0x7f
            picture = UInt16(byte)
            cursor += 1
            return true
        }
        guard cursor + 1 < payload.byteCount else { return false }
        pictureOffset = cursor
        pictureMask = 0x7fff
        picture = payload.readUInt16(cursor) & 0x7fff
        cursor += 2
        return true
    }
}

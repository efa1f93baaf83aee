import MediaControl
import Primitives

/// The numbers that a frame carries in front of its payload, which must go on without a jump when the source changes.
///
/// ```text
/// VP8 (RFC 7741 section 4.2)              VP9 (RFC 9628 section 4.2)           dependency descriptor, first 3 bytes
///  |X|R|N|S|R| PID |                       |I|P|L|F|B|E|V|Z|                    |S|E| template  |
///  |I|L|T|K| RSV   |  if X                 |M| PICTURE ID  |  if I              |  frame number  (16 bits)      |
///  |M| PictureID   |  if I, 7 or 15 bits   |  (15 bits)    |  if M
///  |  TL0PICIDX    |  if L                 | TID |U| SID |D|  if L
///  |TID|Y| KEYIDX  |  if T or K            |  TL0PICIDX    |  if L and not F
/// ```
/// Offsets count from the payload; -1 stands for a field that is not there. The descriptor is a header extension and may come
/// with any codec.
struct FrameNumbers {
    var pictureOffset = -1
    /// 0x7f or 0x7fff: the bits that the number has.
    var pictureMask: UInt16 = 0
    var picture: UInt16 = 0
    var temporalZeroOffset = -1
    var temporalZero: UInt8 = 0
    var keyIndexOffset = -1
    /// 5 bits.
    var keyIndex: UInt8 = 0

    /// Finds the numbers in a payload of `codec`; all fields stay absent in one that is too short or opaque.
    @inline(__always)
    init(codec: Codec, payload: UnsafeRawBufferPointer) {
        switch codec {
        case .vp8: readVP8(payload)
        case .vp9: readVP9(payload)
        case .av1, .opus, .red, .h264, .otherAudio: break
        }
    }

    private mutating func readVP8(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 2, bytes[0] & 0x80 != 0 else { return }
        let present = bytes[1]
        var cursor = 2
        if present & 0x80 != 0 { cursor = readPicture(bytes, at: cursor) }
        if present & 0x40 != 0, cursor >= 0, cursor < bytes.count {
            temporalZeroOffset = cursor
            temporalZero = bytes[cursor]
            cursor += 1
        }
        if present & 0x30 != 0, cursor >= 0, cursor < bytes.count {
            // TID and KEYIDX share the byte; KEYIDX means something only with K.
            guard present & 0x10 != 0 else { return }
            keyIndexOffset = cursor
            keyIndex = bytes[cursor] & 0x1f
        }
    }

    private mutating func readVP9(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 2 else { return }
        let present = bytes[0]
        var cursor = 1
        if present & 0x80 != 0 { cursor = readPicture(bytes, at: cursor) }
        guard present & 0x20 != 0, present & 0x10 == 0, cursor >= 0, cursor + 1 < bytes.count else { return }
        temporalZeroOffset = cursor + 1
        temporalZero = bytes[cursor + 1]
    }

    /// Reads a picture id of 7 or 15 bits; the offset behind it, or -1 when the payload ends in it.
    private mutating func readPicture(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        guard offset < bytes.count else { return -1 }
        if bytes[offset] & 0x80 == 0 {
            pictureOffset = offset
            pictureMask = 0x7f
            picture = UInt16(bytes[offset])
            return offset + 1
        }
        guard offset + 1 < bytes.count else { return -1 }
        pictureOffset = offset
        pictureMask = 0x7fff
        picture = (UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])) & 0x7fff
        return offset + 2
    }

    /// Writes the numbers, moved by the deltas, into `payload`.
    @inline(__always)
    func write(
        into payload: UnsafeMutableRawPointer, picture delta: UInt16, temporalZero tl0: UInt8, keyIndex key: UInt8
    ) {
        if pictureOffset >= 0 {
            let value = (picture &+ delta) & pictureMask
            if pictureMask == 0x7f {
                payload.storeBytes(of: UInt8(truncatingIfNeeded: value), toByteOffset: pictureOffset, as: UInt8.self)
            } else {
                payload.storeBytes(of: (value | 0x8000).bigEndian, toByteOffset: pictureOffset, as: UInt16.self)
            }
        }
        if temporalZeroOffset >= 0 {
            payload.storeBytes(of: temporalZero &+ tl0, toByteOffset: temporalZeroOffset, as: UInt8.self)
        }
        if keyIndexOffset >= 0, key != 0 {
            let byte = payload.load(fromByteOffset: keyIndexOffset, as: UInt8.self)
            payload.storeBytes(of: byte & 0xe0 | (keyIndex &+ key) & 0x1f, toByteOffset: keyIndexOffset, as: UInt8.self)
        }
    }
}

extension FrameNumbers {
    /// The frame number of a dependency descriptor; nil for one without its mandatory fields.
    @inline(__always)
    static func descriptorNumber(_ record: UnsafePointer<PacketRecord>, in packet: UnsafeRawBufferPointer) -> UInt16? {
        guard let place = record.pointee.extensions[.dependencyDescriptor], place.length >= 3 else { return nil }
        return UInt16(packet[Int(place.offset) + 1]) << 8 | UInt16(packet[Int(place.offset) + 2])
    }
}

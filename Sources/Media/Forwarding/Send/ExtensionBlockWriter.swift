import Primitives

/// Writes one header extension block (RFC 8285) behind a 12-byte RTP header.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  0xBE    0xDE  (or 0x10 0x00)  |           length = n          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  ID   | L-1   |  data …   (one-byte form, section 4.2)          |
/// |  ID (8 bits)  |  L (8 bits)   |  data …   (two-byte form, 4.3)  |
/// ```
/// The caller selects the form for each packet: two-byte for an id above 14 or a value that is empty or longer than 16 bytes. The caller has also made room, so
/// that nothing is checked here. Clients of the simulation write with a checking writer of their own: a fault that both sides share would cancel out.
struct ExtensionBlockWriter {
    private let slot: UnsafeMutableRawPointer
    private let isTwoByte: Bool
    /// Offset of the next element.
    private var cursor: Int

    @inline(__always) init(slot: UnsafeMutableRawPointer, isTwoByte: Bool) {
        self.slot = slot
        self.isTwoByte = isTwoByte
        cursor = RTPLayout.fixedHeader + 4
    }

    /// Begins an element of `length` bytes and returns where to write its value.
    @inline(__always) mutating func element(_ id: UInt8, length: Int) -> UnsafeMutableRawPointer {
        if isTwoByte {
            slot.storeBytes(of: id, toByteOffset: cursor, as: UInt8.self)
            slot.storeBytes(of: UInt8(truncatingIfNeeded: length), toByteOffset: cursor &+ 1, as: UInt8.self)
            cursor &+= 2
        } else {
            slot.storeBytes(of: id << 4 | UInt8(truncatingIfNeeded: length &- 1), toByteOffset: cursor, as: UInt8.self)
            cursor &+= 1
        }
        let value = slot + cursor
        cursor &+= length
        return value
    }

    /// Pads to a whole word, writes the block's header and the X bit; returns the offset after the block.
    @inline(__always) mutating func finish() -> Int {
        let start = RTPLayout.fixedHeader + 4
        guard cursor > start else { return RTPLayout.fixedHeader }
        while (cursor &- start) & 3 != 0 {
            slot.storeBytes(of: 0, toByteOffset: cursor, as: UInt8.self)
            cursor &+= 1
        }
        let profile: UInt16 = isTwoByte ? 0x1000 : 0xbede
        slot.storeBytes(of: profile.bigEndian, toByteOffset: RTPLayout.fixedHeader, as: UInt16.self)
        let words = UInt16(truncatingIfNeeded: (cursor &- start) >> 2)
        slot.storeBytes(of: words.bigEndian, toByteOffset: RTPLayout.fixedHeader + 2, as: UInt16.self)
        slot.storeBytes(of: 0x90, toByteOffset: 0, as: UInt8.self)
        return cursor
    }
}

/// Sizes used by the sending side.
enum RTPLayout {
    /// RFC 3550 section 5.1 without contributing sources.
    static let fixedHeader = 12
    /// RTX payloads begin with the original sequence number (RFC 4588 section 4).
    static let originalSequence = 2
    /// Header, the largest extension block (words of 255 + 2 bytes for eleven elements cannot occur: a stored packet has at most
    /// 2,048 bytes in all) and the server's own elements: abs-send-time 5, transport-wide 4, mid 18, playout delay 5, padding 3; and the growth of a
    /// dependency descriptor by a mask of decode targets, at most 5. The byte by which a picture id widens has room in the header, which a stored packet has,
    /// too.
    static let overhead = fixedHeader + 4 + 40 + originalSequence
}

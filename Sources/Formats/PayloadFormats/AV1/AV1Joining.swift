import Primitives

/// Turns the layer frames of one temporal unit into one frame for a depacketizer that looks only at the aggregation header.
///
/// Without a dependency descriptor libwebrtc takes a packet that neither begins nor ends with a fragment for a frame of its own, so each spatial layer becomes
/// a frame; its decoder then gives up on a keyframe of several layers, and the receiver requests another one, forever (Chromium 156). A fragment of no bytes
/// across the border joins them: the OBU that ended the last packet is continued (Z after Y) by nothing.
///
/// ```text
///  |Z|Y| W |N|-|-|-|  OBU element 1 …                 as the publisher sent it
///  |1|Y|W+1|0|-|-|-|  0x00  OBU element 1 …           joined to the packet before
/// ```
/// A count of three elements becomes 0, and the last element gets a length, too.
public struct AV1Joining: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The packet continues the frame of the one before.
    public static let before = Self(rawValue: 1)
    /// The next packet continues its frame.
    public static let next = Self(rawValue: 2)

    /// How many bytes longer than `payload` the joined one is.
    public func growth(of payload: UnsafeRawBufferPointer) -> Int {
        guard contains(.before), let header = payload.first else { return 0 }
        return header & 0x30 == 0x30 ? 1 + lastLength(of: payload).size : 1
    }

    /// Writes `payload` joined to `output`, which has room for `growth` more bytes; the number of bytes written.
    public func write(_ payload: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int {
        guard let source = payload.baseAddress, var header = payload.first else { return 0 }
        if contains(.next) { header |= 0x40 }
        guard contains(.before) else {
            output.copyMemory(from: source, byteCount: payload.count)
            output.storeBytes(of: header, as: UInt8.self)
            return payload.count
        }
        // No coded video sequence begins inside of an OBU (section 4.4).
        header = (header | 0x80) & ~0x08
        var cursor = 2, split = payload.count
        let count = header & 0x30
        if count == 0x30 {
            header &= ~0x30
            split = lastLength(of: payload).offset
        } else if count > 0 {
            header += 0x10
        }
        output.storeBytes(of: header, as: UInt8.self)
        output.storeBytes(of: 0, toByteOffset: 1, as: UInt8.self)
        (output + cursor).copyMemory(from: source + 1, byteCount: split - 1)
        cursor += split - 1
        guard split < payload.count else { return cursor }
        var length = payload.count - split
        repeat {
            let byte = UInt8(truncatingIfNeeded: length & 0x7f) | (length > 0x7f ? 0x80 : 0)
            output.storeBytes(of: byte, toByteOffset: cursor, as: UInt8.self)
            cursor += 1
            length >>= 7
        } while length > 0
        (output + cursor).copyMemory(from: source + split, byteCount: payload.count - split)
        return cursor + payload.count - split
    }

    /// Where the third of three elements begins, and how many bytes its length takes; for a truncated payload its end.
    private func lastLength(of payload: UnsafeRawBufferPointer) -> (offset: Int, size: Int) {
        var offset = 1
        for _ in 0..<2 {
            guard let length = LEB128.read(payload.bytes, &offset, end: payload.count),
                Int(length) <= payload.count - offset
            else { return (payload.count, 0) }
            offset += Int(length)
        }
        let length = payload.count - offset
        return (offset, length == 0 ? 0 : length < 1 << 7 ? 1 : length < 1 << 14 ? 2 : 3)
    }
}

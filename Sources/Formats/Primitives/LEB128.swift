/// Little endian base 128 numbers of up to 32 bits (AV1 section 4.10.5), as AV1 and the extension Video Layers Allocation have them. Inlinable, because reading
/// an AV1 packet reads one for each of its OBUs.
public enum LEB128 {
    /// The number at `position`, which moves past it; nil when it does not end before `end` or is too large.
    @inlinable public static func read(_ bytes: RawSpan, _ position: inout Int, end: Int) -> UInt32? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 56, by: 7) {
            guard position < end else { return nil }
            let byte = bytes.readUInt8(position)
            position += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return UInt32(exactly: value) }
        }
        return nil
    }

    /// The shortest form of `number`.
    public static func bytes(_ number: UInt32) -> [UInt8] {
        var rest = number
        var bytes: [UInt8] = []
        repeat {
            bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return bytes
    }
}

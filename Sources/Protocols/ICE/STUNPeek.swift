internal import Primitives

/// A look at a datagram that costs no allocation and no digest: which peer a Binding request from an unknown address is for.
public enum STUNPeek {
    /// Whether the datagram has the format of a STUN message (RFC 8489 section 5): two zero bits, length, magic cookie.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// |0 0|     STUN Message Type     |         Message Length        |
    /// |                         Magic Cookie                          |
    /// |                     Transaction ID (96 bits)                  |
    /// ```
    public static func isSTUN(_ datagram: borrowing RawSpan) -> Bool {
        datagram.byteCount >= 20 && datagram.readUInt8(0) < 64 && datagram.readUInt32(4) == 0x2112_a442
            && Int(datagram.readUInt16(2)) == datagram.byteCount - 20 && datagram.readUInt16(2) % 4 == 0
    }

    /// Where in a Binding request the server's own user name fragment is: USERNAME up to the colon
    /// (RFC 8445 section 7.2.2); nil when it is no Binding request or has no such attribute.
    public static func localUfrag(of datagram: borrowing RawSpan) -> Range<Int>? {
        guard isSTUN(datagram), datagram.readUInt16(0) == 0x0001 else { return nil }
        var offset = 20
        while offset + 4 <= datagram.byteCount {
            let type = datagram.readUInt16(offset)
            let length = Int(datagram.readUInt16(offset + 2))
            let value = offset + 4
            guard value + length <= datagram.byteCount else { return nil }
            if type == 0x0006 { return ufrag(of: datagram, in: value..<(value + length)) }
            offset = value + (length + 3) & ~3
        }
        return nil
    }

    private static func ufrag(of datagram: borrowing RawSpan, in value: Range<Int>) -> Range<Int>? {
        for index in value where datagram.readUInt8(index) == UInt8(ascii: ":") {
            return index > value.lowerBound ? value.lowerBound..<index : nil
        }
        return nil
    }
}

/// One field of a message on the wire (protobuf's encoding): its number and the kind of its value in one varint, then the value.
///
/// Forwarded messages are copied with these. protobuf-c would change them: its texts are C strings, and end at a NUL.
struct WireField {
    let number: UInt64
    /// With its number.
    let range: Range<Int>
    /// The content of a text, of bytes or of a message; nil: another kind of value.
    let content: Range<Int>?

    /// The fields of a message in their order; nil if the bytes are no message.
    static func list(_ bytes: ArraySlice<UInt8>) -> [WireField]? {
        var fields: [WireField] = []
        var place = bytes.startIndex
        while place < bytes.endIndex {
            guard let field = WireField(bytes, at: place) else { return nil }
            fields.append(field)
            place = field.range.upperBound
        }
        return fields
    }

    /// The text in the field that a path of numbers leads to, with its NULs; nil if there is none. Of a number that occurs several times the last one counts.
    static func text(at path: [UInt64], in bytes: [UInt8]) -> String? {
        var range = bytes.indices
        for number in path {
            guard let field = list(bytes[range])?.last(where: { $0.number == number }), let content = field.content
            else { return nil }
            range = content
        }
        return String(decoding: bytes[range], as: UTF8.self)
    }

    /// The bytes of a message within another one, as the field of this number.
    static func message(_ number: UInt64, _ bytes: [UInt8]) -> [UInt8] {
        varint(number << 3 | 2) + varint(UInt64(bytes.count)) + bytes
    }

    private init?(_ bytes: ArraySlice<UInt8>, at start: Int) {
        var place = start
        // No message has a field of number 0, or one whose tag has more than 32 bits: some readers cut those off and find another number, such as the sender's.
        guard let tag = Self.varint(in: bytes, &place), tag >> 3 > 0, tag <= UInt32.max else { return nil }
        var content: Range<Int>?
        switch tag & 7 {
        case 0: guard Self.varint(in: bytes, &place) != nil else { return nil }
        case 1: place += 8
        case 2:
            guard let count = Self.varint(in: bytes, &place), count <= UInt64(bytes.endIndex - place) else {
                return nil
            }
            content = place..<(place + Int(count))
            place += Int(count)
        case 5: place += 4
        // Groups, which proto3 does not have.
        default: return nil
        }
        guard place <= bytes.endIndex else { return nil }
        number = tag >> 3
        range = start..<place
        self.content = content
    }

    /// Seven bits in each byte, the lowest first; the highest bit is set if another byte follows.
    private static func varint(in bytes: ArraySlice<UInt8>, _ place: inout Int) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard place < bytes.endIndex else { return nil }
            let byte = bytes[place]
            place += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func varint(_ value: UInt64) -> [UInt8] {
        var (value, bytes) = (value, [UInt8]())
        while value >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        return bytes + [UInt8(value)]
    }
}

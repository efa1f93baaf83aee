/// A box type: four characters.
public struct BoxType: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The characters as one number in network order.
    public let rawValue: UInt32

    /// The type with this number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The type with these four ASCII characters.
    public init(stringLiteral text: StaticString) {
        precondition(text.utf8CodeUnitCount == 4, "a box type has four characters")
        rawValue = (0..<4).reduce(0) { $0 << 8 | UInt32(text.utf8Start[$1]) }
    }

    /// The four characters, with a dot for each that is not printable.
    public var description: String {
        let bytes = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: rawValue >> UInt32($0)) }
        return String(decoding: bytes.map { (0x20..<0x7f).contains($0) ? $0 : UInt8(ascii: ".") }, as: UTF8.self)
    }
}

/// Appends boxes to a run of bytes (ISO/IEC 14496-12 section 4.2).
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                      size, header included                    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                             type                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    version    |            flags (full boxes only)            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
struct BoxWriter {
    private(set) var bytes: [UInt8] = []

    /// Appends a box with what `content` appends.
    mutating func box(_ type: BoxType, _ content: (inout BoxWriter) -> Void) {
        let start = bytes.count
        write(UInt32(0))
        write(type.rawValue)
        content(&self)
        patch(UInt32(bytes.count - start), at: start)
    }

    /// Appends a full box with what `content` appends.
    mutating func box(_ type: BoxType, version: UInt8, flags: UInt32 = 0, _ content: (inout BoxWriter) -> Void) {
        box(type) {
            $0.write(UInt32(version) << 24 | flags)
            content(&$0)
        }
    }

    mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(bytes more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    mutating func zeros(_ count: Int) { bytes.append(contentsOf: repeatElement(0, count: count)) }

    /// Overwrites a number that was written before its value was known.
    mutating func patch(_ number: UInt32, at offset: Int) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * index)) }
    }
}

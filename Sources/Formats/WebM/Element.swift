import Primitives

/// The beginning of an EBML element: what it is, and how long its content is (RFC 8794 sections 4 to 6).
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |1|  id (1 to 4 bytes: so many bits up to the first that is set) |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |1|  size (1 to 8 bytes, likewise; all ones: unknown)            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
struct Element: Sendable {
    let id: ElementID
    /// Bytes of id and size.
    let headerLength: Int
    /// Bytes of content; nil: up to the first element that cannot be part of it.
    let size: Int64?

    /// No beginning of an element is longer.
    static let maximumHeader = 12

    /// The element at `offset`; nil if its beginning is cut off or invalid.
    init?(at offset: Int, in bytes: RawSpan) {
        var position = offset
        guard position < bytes.byteCount else { return nil }
        let idLength = bytes.readUInt8(position).leadingZeroBitCount + 1
        guard idLength <= 4, position + idLength < bytes.byteCount else { return nil }
        var id: UInt32 = 0
        for index in 0..<idLength { id = id << 8 | UInt32(bytes.readUInt8(position + index)) }
        position += idLength
        guard let size = VariableSize(at: position, in: bytes) else { return nil }
        self.id = ElementID(rawValue: id)
        self.size = size.isUnknown ? nil : Int64(size.value)
        headerLength = idLength + size.length
    }

    /// Where its content is when it begins at `offset`; nil if the size is unknown or extends beyond `end`.
    func content(from offset: Int, end: Int) -> Range<Int>? {
        let start = offset + headerLength
        guard let size, start <= end, size <= Int64(end - start) else { return nil }
        return start..<(start + Int(size))
    }
}

/// A number of 1 to 8 bytes that encodes its own length (RFC 8794 section 4).
struct VariableSize {
    /// Without the marker; less than 2^56.
    let value: UInt64
    /// Bytes of it.
    let length: Int
    /// All bits of the value are set.
    let isUnknown: Bool

    init?(at offset: Int, in bytes: RawSpan) {
        guard offset < bytes.byteCount else { return nil }
        let first = bytes.readUInt8(offset)
        let length = first.leadingZeroBitCount + 1
        guard length <= 8, offset + length <= bytes.byteCount else { return nil }
        var value = UInt64(first) & (0xff >> UInt64(length))
        for index in 1..<length { value = value << 8 | UInt64(bytes.readUInt8(offset + index)) }
        self.value = value
        self.length = length
        isUnknown = value == 1 << UInt64(7 * length) - 1
    }
}

/// The kind of an element, by its number with its marker (RFC 9559 section 5).
struct ElementID: RawRepresentable, Hashable, Sendable {
    let rawValue: UInt32

    static let header = ElementID(rawValue: 0x1a45_dfa3)
    static let docType = ElementID(rawValue: 0x4282)
    static let segment = ElementID(rawValue: 0x1853_8067)

    static let seekHead = ElementID(rawValue: 0x114d_9b74)
    static let info = ElementID(rawValue: 0x1549_a966)
    static let tracks = ElementID(rawValue: 0x1654_ae6b)
    static let cluster = ElementID(rawValue: 0x1f43_b675)
    static let cues = ElementID(rawValue: 0x1c53_bb6b)
    static let attachments = ElementID(rawValue: 0x1941_a469)
    static let chapters = ElementID(rawValue: 0x1043_a770)
    static let tags = ElementID(rawValue: 0x1254_c367)

    static let timestampScale = ElementID(rawValue: 0x2a_d7b1)

    static let trackEntry = ElementID(rawValue: 0xae)
    static let trackNumber = ElementID(rawValue: 0xd7)
    static let trackType = ElementID(rawValue: 0x83)
    static let codec = ElementID(rawValue: 0x86)
    static let codecPrivate = ElementID(rawValue: 0x63a2)
    static let codecDelay = ElementID(rawValue: 0x56aa)
    static let defaultDuration = ElementID(rawValue: 0x23_e383)
    static let contentEncodings = ElementID(rawValue: 0x6d80)
    static let video = ElementID(rawValue: 0xe0)
    static let pixelWidth = ElementID(rawValue: 0xb0)
    static let pixelHeight = ElementID(rawValue: 0xba)
    static let audio = ElementID(rawValue: 0xe1)
    static let channels = ElementID(rawValue: 0x9f)

    static let timestamp = ElementID(rawValue: 0xe7)
    static let simpleBlock = ElementID(rawValue: 0xa3)
    static let blockGroup = ElementID(rawValue: 0xa0)
    static let block = ElementID(rawValue: 0xa1)
    static let blockDuration = ElementID(rawValue: 0x9b)
    static let referenceBlock = ElementID(rawValue: 0xfb)

    /// Whether it ends a cluster of unknown size: it is a child of the segment, or the beginning of the next file.
    var endsCluster: Bool { Self.besideClusters.contains(self) }

    private static let besideClusters: Set<ElementID> = [
        .header, .segment, .seekHead, .info, .tracks, .cluster, .cues, .attachments, .chapters, .tags,
    ]
}

extension RawSpan {
    /// The number in the content of an element: up to 8 bytes, or no bytes for 0 (RFC 8794 section 7.2). nil if it is longer or cut off.
    func unsignedInteger(_ content: Range<Int>) -> UInt64? {
        guard content.count <= 8, content.upperBound <= byteCount else { return nil }
        var value: UInt64 = 0
        for position in content { value = value << 8 | UInt64(readUInt8(position)) }
        return value
    }
}

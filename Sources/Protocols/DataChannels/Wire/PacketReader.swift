import Primitives

/// A received packet: its header is checked, its chunks are read one by one.
///
/// ```text
///  0                   1                   2                   3
/// |      source port number      |   destination port number    |
/// |                      verification tag                       |
/// |                          checksum                           |
/// |  chunk type  |    flags      |        chunk length          |
/// |  chunk value …                                              |
/// ```
struct PacketReader {
    /// One chunk; lent for the duration of the packet.
    struct Chunk {
        let type: UInt8
        let flags: UInt8
        let value: UnsafeRawBufferPointer

        /// The type, if this end understands it.
        var kind: ChunkType? { ChunkType(rawValue: type) }
    }

    let sourcePort: UInt16, destinationPort: UInt16
    let tag: UInt32
    /// Whether the checksum is right, and whether it is absent (RFC 9653 section 5.3).
    let isChecked: Bool, hasNoChecksum: Bool
    private let bytes: UnsafeRawBufferPointer
    private var position = PacketSize.header

    /// nil when this is no SCTP packet.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= PacketSize.header + PacketSize.chunkHeader, bytes.count <= PacketSize.largestReceived
        else { return nil }
        self.bytes = bytes
        let span = bytes.bytes
        sourcePort = span.readUInt16(0)
        destinationPort = span.readUInt16(2)
        tag = span.readUInt32(4)
        // RFC 9260 appendix A: the checksum is in the packet with its lowest byte first.
        let sum = UInt32(littleEndian: span.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt32.self))
        hasNoChecksum = sum == 0
        isChecked = sum != 0 && sum == PacketReader.checksum(of: bytes)
    }

    /// The first chunk's type.
    var firstType: ChunkType? { ChunkType(rawValue: bytes[PacketSize.header]) }

    /// The next chunk; nil at the end, or if a length is wrong: then the rest of the packet is ignored.
    mutating func next() -> Chunk? {
        guard position + PacketSize.chunkHeader <= bytes.count else { return nil }
        let length = Int(bytes.bytes.readUInt16(position + 2))
        guard length >= PacketSize.chunkHeader, position + length <= bytes.count else { return nil }
        let value = UnsafeRawBufferPointer(
            rebasing: bytes[(position + PacketSize.chunkHeader)..<(position + length)])
        let chunk = Chunk(type: bytes[position], flags: bytes[position + 1], value: value)
        position += PacketSize.padded(length)
        return chunk
    }

    /// Whether the chunk that was read last is the only one.
    var isAtEnd: Bool { position >= bytes.count }

    /// The checksum of a packet, its own field counted as zero.
    static func checksum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
        var sum = CRC32c(), zero = UInt32(0)
        sum.update(UnsafeRawBufferPointer(rebasing: bytes[..<8]))
        withUnsafeBytes(of: &zero) { sum.update($0) }
        sum.update(UnsafeRawBufferPointer(rebasing: bytes[12...]))
        return sum.value
    }
}

/// The parameters of a chunk (RFC 9260 section 3.2.1): type, length, value, padded like chunks.
struct ParameterReader {
    private var rest: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    /// The next parameter; nil at the end or at a wrong length.
    mutating func next() -> (type: UInt16, value: UnsafeRawBufferPointer)? {
        guard rest.count >= 4 else { return nil }
        let type = rest.bytes.readUInt16(0), length = Int(rest.bytes.readUInt16(2))
        guard length >= 4, length <= rest.count else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: rest[4..<length])
        rest = UnsafeRawBufferPointer(rebasing: rest[min(PacketSize.padded(length), rest.count)...])
        return (type, value)
    }
}

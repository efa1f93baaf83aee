import Primitives

/// Writes one packet into memory of the caller, chunk by chunk.
struct PacketWriter {
    private let buffer: UnsafeMutableRawBufferPointer
    private(set) var length = PacketSize.header

    /// `buffer` has at least the size of the header.
    init(_ buffer: UnsafeMutableRawBufferPointer, from source: UInt16, to destination: UInt16, tag: UInt32) {
        self.buffer = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, PacketSize.largest)])
        self.buffer.write(source, at: 0)
        self.buffer.write(destination, at: 2)
        self.buffer.write(tag, at: 4)
        self.buffer.write(UInt32(0), at: 8)
    }

    /// Whether there is no chunk yet.
    var isEmpty: Bool { length == PacketSize.header }

    /// The bytes that one more chunk's value may have.
    var room: Int { buffer.count - length - PacketSize.chunkHeader }

    /// Appends a chunk whose value has `count` bytes and returns the place of the value; nil when it does not fit.
    mutating func chunk(_ type: ChunkType, flags: UInt8 = 0, count: Int) -> UnsafeMutableRawBufferPointer? {
        let total = PacketSize.padded(PacketSize.chunkHeader + count)
        guard length + total <= buffer.count else { return nil }
        buffer.write(type.rawValue, at: length)
        buffer.write(flags, at: length + 1)
        buffer.write(UInt16(PacketSize.chunkHeader + count), at: length + 2)
        let start = length + PacketSize.chunkHeader
        for index in (start + count)..<(length + total) { buffer[index] = 0 }
        length += total
        return UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + count)])
    }

    /// Appends a chunk with these bytes as its value; false when it does not fit.
    mutating func chunk(_ type: ChunkType, flags: UInt8 = 0, _ value: [UInt8]) -> Bool {
        guard let place = chunk(type, flags: flags, count: value.count) else { return false }
        place.copyBytes(from: value)
        return true
    }

    /// Completes the packet and returns its length; without a checksum if the peer accepts that (RFC 9653).
    func finish(withChecksum: Bool) -> Int {
        if withChecksum {
            let sum = PacketReader.checksum(of: UnsafeRawBufferPointer(rebasing: buffer[..<length]))
            buffer.storeBytes(of: sum.littleEndian, toByteOffset: 8, as: UInt32.self)
        }
        return length
    }
}

/// Appends numbers in network order to an array, for chunks that are written rarely.
extension [UInt8] {
    mutating func append(number: UInt16) {
        append(contentsOf: [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
    }
    mutating func append(number: UInt32) {
        append(number: UInt16(number >> 16))
        append(number: UInt16(truncatingIfNeeded: number))
    }

    /// Appends a parameter with its padding.
    mutating func append(parameter type: UInt16, _ value: [UInt8]) {
        append(number: type)
        append(number: UInt16(4 + value.count))
        append(contentsOf: value)
        append(contentsOf: repeatElement(0, count: PacketSize.padded(value.count) - value.count))
    }
}

import Primitives

/// A received SACK (RFC 9260 section 3.3.4), its gap blocks lent for the duration of the packet.
struct Acknowledgement {
    /// Everything up to here has arrived.
    let cumulative: UInt32
    /// The free bytes of the receiver's window.
    let window: UInt32
    private let blocks: UnsafeRawBufferPointer

    init?(_ value: UnsafeRawBufferPointer) {
        guard value.count >= 12 else { return nil }
        let span = value.bytes
        cumulative = span.readUInt32(0)
        window = span.readUInt32(4)
        let length = Int(span.readUInt16(8)) * 4
        guard value.count >= 12 + length else { return nil }
        blocks = UnsafeRawBufferPointer(rebasing: value[12..<(12 + length)])
    }

    /// The number of gap blocks.
    var gapCount: Int { blocks.count / 4 }

    /// A block of numbers that have arrived, relative to `cumulative`.
    func gap(_ index: Int) -> (start: Int64, end: Int64) {
        (Int64(blocks.bytes.readUInt16(index * 4)), Int64(blocks.bytes.readUInt16(index * 4 + 2)))
    }

    /// Whether the blocks are in order and do not overlap; a sender that violates this tries to waste time.
    var isOrdered: Bool {
        var last: Int64 = 0
        for index in 0..<gapCount {
            let (start, end) = gap(index)
            guard start > last, end >= start else { return false }
            last = end
        }
        return true
    }
}

/// A received DATA chunk (RFC 9260 section 3.3.1), its payload lent for the duration of the packet.
struct DataChunk {
    static let endFlag: UInt8 = 1, beginFlag: UInt8 = 2, unorderedFlag: UInt8 = 4, immediateFlag: UInt8 = 8

    let flags: UInt8
    let tsn: UInt32
    let stream: UInt16, sequence: UInt16
    let identifier: UInt32
    let payload: UnsafeRawBufferPointer

    /// nil when it is too short; a chunk without payload is a protocol violation (section 6.2).
    init?(_ chunk: PacketReader.Chunk) {
        guard chunk.value.count > PacketSize.dataHeader - PacketSize.chunkHeader else { return nil }
        let span = chunk.value.bytes
        flags = chunk.flags
        tsn = span.readUInt32(0)
        stream = span.readUInt16(4)
        sequence = span.readUInt16(6)
        identifier = span.readUInt32(8)
        payload = UnsafeRawBufferPointer(rebasing: chunk.value[12...])
    }

    var isFirst: Bool { flags & Self.beginFlag != 0 }
    var isLast: Bool { flags & Self.endFlag != 0 }
    var isUnordered: Bool { flags & Self.unorderedFlag != 0 }
    /// The sender asks for a SACK without delay (section 3.3.1, I bit).
    var wantsAcknowledgement: Bool { flags & Self.immediateFlag != 0 }
}

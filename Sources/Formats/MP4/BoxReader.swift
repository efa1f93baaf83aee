import Primitives

/// Walks the boxes in a range of bytes.
struct BoxReader {
    /// One box: where its content is.
    struct Box {
        var type: BoxType
        /// Where the content starts, after size and type.
        var offset: Int
        /// Bytes of content.
        var length: Int
    }

    private var position: Int
    private let end: Int

    /// A walk over `length` bytes from `offset` on.
    init(offset: Int, length: Int) {
        position = offset
        end = offset + length
    }

    /// The content of `box`.
    init(in box: Box, skipping header: Int = 0) {
        self.init(offset: box.offset + min(header, box.length), length: box.length - min(header, box.length))
    }

    /// The next box; nil at the end and at one that is cut off.
    mutating func next(in bytes: RawSpan) -> Box? {
        guard position + 8 <= end else { return nil }
        let size = Int(bytes.readUInt32(position))
        guard size >= 8, size <= end - position else { return nil }
        defer { position += size }
        return Box(type: BoxType(rawValue: bytes.readUInt32(position + 4)), offset: position + 8, length: size - 8)
    }

    /// The first box of `type`.
    mutating func first(_ type: BoxType, in bytes: RawSpan) -> Box? {
        while let box = next(in: bytes) { if box.type == type { return box } }
        return nil
    }
}

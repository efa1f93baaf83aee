import Primitives

/// How a finished file, whose sample table is behind its data, becomes one that players can start at once, with the table in front.
///
/// ```text
/// ftyp  mdat [data]  moov      becomes      ftyp  moov  mdat [data]
/// ```
/// All samples move by the table's length, so the table's offsets grow by it. Nothing else changes: the file is as long as before.
public struct FrontIndex: Sendable, Hashable {
    /// `ftyp` and the header of the data, at the beginning of a finished file.
    public static let headLength = Int(Movie.placeholderOffset) + Movie.placeholderLength

    /// What the new file begins with.
    public let head: [UInt8]
    /// Where the data that follows it begins in the finished file, and how long it is.
    public let dataOffset = Int64(Self.headLength)
    public let dataLength: Int64

    /// Where the table begins in a file whose first ``headLength`` bytes are `head`; nil unless it is a finished file with the table behind the data.
    public static func tableOffset(head: RawSpan) -> Int64? {
        guard head.byteCount >= headLength, BoxType(rawValue: head.readUInt32(4)) == "ftyp",
            head.readUInt32(0) == UInt32(Movie.placeholderOffset), head.readUInt32(28) == 1,
            BoxType(rawValue: head.readUInt32(32)) == "mdat"
        else { return nil }
        let size = head.readUInt64(36)
        guard size >= UInt64(Movie.placeholderLength), size < 1 << 62 else { return nil }
        return Movie.placeholderOffset + Int64(size)
    }

    /// Whether the file whose first ``headLength`` bytes are `head` has its table in front. An unfinished file has none there: a placeholder follows its
    /// `ftyp`.
    public static func isInFront(head: RawSpan) -> Bool {
        head.byteCount >= headLength && BoxType(rawValue: head.readUInt32(4)) == "ftyp"
            && head.readUInt32(0) == UInt32(Movie.placeholderOffset)
            && BoxType(rawValue: head.readUInt32(Int(Movie.placeholderOffset) + 4)) == "moov"
    }

    /// The front of a file that begins with `head` and ends with `table`; nil when these are no such parts.
    public init?(head: RawSpan, table: RawSpan) {
        guard let end = Self.tableOffset(head: head), table.byteCount >= 8,
            Int(table.readUInt32(0)) == table.byteCount, BoxType(rawValue: table.readUInt32(4)) == "moov",
            let offsets = Self.chunkOffsets(in: table)
        else { return nil }
        dataLength = end - Int64(Self.headLength)
        var bytes = table.withUnsafeBytes { Array($0) }
        for index in 0..<(offsets.length / 8) {
            let place = offsets.offset + 8 * index
            let moved = table.readUInt64(place) &+ UInt64(table.byteCount)
            for byte in 0..<8 { bytes[place + byte] = UInt8(truncatingIfNeeded: moved >> UInt64(56 - 8 * byte)) }
        }
        let beginning = head.withUnsafeBytes { Array($0) }
        let split = Int(Movie.placeholderOffset)
        self.head = beginning[..<split] + bytes + beginning[split..<Self.headLength]
    }

    /// The entries of the only track's `co64`.
    private static func chunkOffsets(in table: RawSpan) -> (offset: Int, length: Int)? {
        var boxes = BoxReader(offset: 8, length: table.byteCount - 8)
        for type in ["trak", "mdia", "minf", "stbl"] as [BoxType] {
            guard let box = boxes.first(type, in: table) else { return nil }
            boxes = BoxReader(in: box)
        }
        guard let box = boxes.first("co64", in: table), box.length >= 8,
            Int(table.readUInt32(box.offset + 4)) == (box.length - 8) / 8, box.length % 8 == 0
        else { return nil }
        return (box.offset + 8, box.length - 8)
    }
}

public import Movies
import Primitives

/// Walks the boxes of a file that `FragmentWriter` wrote, as far as they are complete.
///
/// Sans-IO: the caller reads the range that `wanted` requests from the file and passes it to `receive`, until `outcome` is set.
public struct MovieScan: Sendable {
    /// What was found.
    public enum Outcome: Sendable, Hashable {
        /// The file is finished already.
        case finished
        /// These fragments are complete; the file may be cut off after them.
        case fragments(FragmentTable)
        /// Its beginning is incomplete: nothing was recorded.
        case empty
    }

    /// What to read next; fewer bytes only at the file's end.
    public private(set) var wanted: FileRange
    /// The result; nil while there is something to read.
    public private(set) var outcome: Outcome?

    private enum Step {
        case header
        /// The whole of a box that has this type and size.
        case box(BoxType, Int)
    }

    private let fileLength: Int64
    private var step = Step.header
    private var position: Int64 = 0
    private var table: FragmentTable?
    /// Far above the `moov` and `moof` of one track with fragments of a second.
    private static let maximumBox = 1 << 20
    private static let headerLength = 16

    /// A scan of a file of `fileLength` bytes.
    public init(fileLength: Int64) {
        self.fileLength = fileLength
        wanted = FileRange(offset: 0, length: Self.headerLength)
        if fileLength < Movie.placeholderOffset { outcome = .empty }
    }

    /// Processes the bytes of `wanted`.
    public mutating func receive(_ bytes: RawSpan) {
        guard outcome == nil else { return }
        switch step {
        case .header: receiveHeader(bytes)
        case .box(let type, let size): receiveBox(type, size, bytes)
        }
    }

    private mutating func end() {
        if let table { outcome = .fragments(table) } else { outcome = .empty }
    }

    private mutating func receiveHeader(_ bytes: RawSpan) {
        guard bytes.byteCount >= 8 else { return end() }
        let size = Int64(bytes.readUInt32(0))
        let type = BoxType(rawValue: bytes.readUInt32(4))
        // Only the one big mdat of a finished file has a 64-bit size.
        if size == 1, type == "mdat" {
            outcome = .finished
            return
        }
        guard size >= 8, position + size <= fileLength, size <= Int64(Self.maximumBox) else { return end() }
        switch type {
        case "ftyp", "free":
            advance(by: size)
        case "moov" where table == nil, "moof" where table != nil:
            // With the header of the data after a fragment.
            step = .box(type, Int(size))
            wanted = FileRange(offset: position, length: Int(size) + (type == "moof" ? 8 : 0))
        default: end()
        }
    }

    private mutating func advance(by size: Int64) {
        position += size
        step = .header
        wanted = FileRange(offset: position, length: Self.headerLength)
        if position >= fileLength { end() }
    }

    private mutating func receiveBox(_ type: BoxType, _ size: Int, _ bytes: RawSpan) {
        guard bytes.byteCount >= size else { return end() }
        if type == "moov" {
            guard let found = FragmentTable(moov: bytes.extracting(0..<size), end: position + Int64(size)) else {
                return end()
            }
            table = found
            return advance(by: Int64(size))
        }
        guard bytes.byteCount >= size + 8, BoxType(rawValue: bytes.readUInt32(size + 4)) == "mdat" else { return end() }
        let data = Int64(bytes.readUInt32(size))
        guard data >= 8, position + Int64(size) + data <= fileLength,
            table?.append(
                moof: bytes.extracting(0..<size), dataOffset: position + Int64(size) + 8, dataLength: data - 8) == true
        else { return end() }
        advance(by: Int64(size) + data)
    }
}

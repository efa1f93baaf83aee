import Glibc
import MP4
import NetworkIO
import Primitives

/// Moves the table of samples of one finished file to the front: piece by piece, it makes a copy beside the file, which gets the file's name once it is on the
/// disk. Whenever the process ends, there is the old file or the new one.
struct FrontIndexPass: ~Copyable {
    /// This much is copied and synced at a time: others that write to the disk wait no longer than that takes.
    static let sliceLength = 4 << 20
    /// The suffix of the name of an incomplete file.
    static let suffix = ".new"
    /// Two hours of audio and video have a table of 3 MB.
    private static let longestTable: Int64 = 64 << 20

    private let path: String
    private let source: OutputFile
    private let target: OutputFile
    private let front: FrontIndex
    private var done: Int64 = 0

    /// A pass over the file at `path`; nil if its table is already in front (`isDone`), or it has none. It needs as much space as the file's length.
    init?(_ path: String) throws(SystemError) {
        let file = try OutputFile(reading: path)
        let head = try file.read(FrontIndex.headLength, at: 0)
        guard let offset = FrontIndex.tableOffset(head: head.span.bytes), offset < file.length,
            file.length - offset <= Self.longestTable
        else { return nil }
        let table = try file.read(Int(file.length - offset), at: offset)
        guard let front = FrontIndex(head: head.span.bytes, table: table.span.bytes) else { return nil }
        let new = path + Self.suffix
        unlink(new)
        target = try OutputFile(new, isNew: true)
        source = file
        self.front = front
        self.path = path
    }

    /// Copies another piece; true: the file has its new form.
    mutating func advance() throws(SystemError) -> Bool {
        if done == 0 { try target.write(front.head, at: 0) }
        let length = min(Int64(Self.sliceLength), front.dataLength - done)
        if length > 0 {
            let bytes = try source.read(Int(length), at: front.dataOffset + done)
            // The file is shorter than its table says: it stays as it is.
            guard Int64(bytes.count) == length else { throw SystemError("pread", code: EIO) }
            try target.write(bytes, at: Int64(front.head.count) + done)
            done += length
        }
        try target.synchronize()
        guard done == front.dataLength else { return false }
        guard rename(path + Self.suffix, path) == 0 else { throw SystemError("rename", code: errno) }
        return true
    }

    /// Whether the table of the file at `path` is in front already.
    static func isDone(_ path: String) throws(SystemError) -> Bool {
        let head = try OutputFile(reading: path).read(FrontIndex.headLength, at: 0)
        return FrontIndex.isInFront(head: head.span.bytes)
    }

    /// Removes the incomplete copy of a pass over the file at `path`.
    static func abandon(_ path: String) { unlink(path + suffix) }
}

import Glibc
import MP4
import NetworkIO
import Primitives

/// Joins the files of a part into one: writes it beside them, piece by piece, and gives it its name once it is on the disk. Whenever the process ends, the
/// files are as they were.
struct JoinPass: ~Copyable {
    private let path: String
    private let target: OutputFile
    private let sources: [RecordingFile]
    private let steps: [JoinedMovie.Step]
    private var next = 0
    /// Bytes of the step that have been copied.
    private var copied = 0
    private var length: Int64 = 0

    /// A pass that writes the file at `path` from `sources`, by `plan`.
    init(_ path: String, _ plan: JoinedMovie.Plan, from sources: [RecordingFile]) throws(SystemError) {
        let new = path + FrontIndexPass.suffix
        unlink(new)
        target = try OutputFile(new, isNew: true)
        self.path = path
        self.sources = sources
        steps = plan.steps
    }

    /// Writes another piece; true: the file is complete and has its name.
    mutating func advance() throws(SystemError) -> Bool {
        var slice: [UInt8] = []
        while slice.count < FrontIndexPass.sliceLength, next < steps.count {
            switch steps[next] {
            case .write(let bytes):
                slice += bytes
                next += 1
            case .copy(let source, let offset, let count):
                let wanted = min(count - copied, FrontIndexPass.sliceLength - slice.count)
                let bytes = sources[source].read(wanted, at: offset + Int64(copied))
                // The file is shorter than its table says.
                guard bytes.count == wanted else { throw SystemError("pread", code: EIO) }
                slice += bytes
                copied += wanted
                if copied == count { (next, copied) = (next + 1, 0) }
            }
        }
        try target.write(slice, at: length)
        length += Int64(slice.count)
        try target.synchronize()
        guard next == steps.count else { return false }
        guard rename(path + FrontIndexPass.suffix, path) == 0 else { throw SystemError("rename", code: errno) }
        return true
    }
}

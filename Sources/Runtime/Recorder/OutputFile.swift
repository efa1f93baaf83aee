import Glibc
import MP4
import Movies
import NetworkIO
import Primitives

/// A file with writes at given offsets. They block: only the recorder's thread uses it.
struct OutputFile: ~Copyable {
    private let descriptor: Int32

    /// Opens the file at `path`; `isNew`: it must not exist yet.
    init(_ path: String, isNew: Bool, appends: Bool = false) throws(SystemError) {
        let flags = O_RDWR | O_CLOEXEC | (isNew ? O_CREAT | O_EXCL : appends ? O_CREAT | O_APPEND : 0)
        descriptor = open(path, flags, 0o640)
        guard descriptor >= 0 else { throw SystemError("open", code: errno) }
    }

    /// Opens the file at `path` only for reading: the file system may be read-only.
    init(reading path: String) throws(SystemError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open", code: errno) }
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8], at offset: Int64) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + done, $0.count - done, off_t(offset) + done)
            }
            if count < 0 {
                guard errno == EINTR else { throw SystemError("pwrite", code: errno) }
            } else {
                done += count
            }
        }
    }

    /// Appends to a file that was opened for appending.
    func append(_ bytes: [UInt8]) throws(SystemError) { try write(bytes, at: 0) }

    func read(_ length: Int, at offset: Int64) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, length, off_t(offset)) }
        guard count >= 0 else { throw SystemError("pread", code: errno) }
        bytes.removeLast(length - count)
        return bytes
    }

    var length: Int64 { max(0, Int64(lseek(descriptor, 0, SEEK_END))) }

    /// The file system's number of it, whatever its name.
    var number: UInt64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : 0
    }

    func truncate(to length: Int64) throws(SystemError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw SystemError("ftruncate", code: errno) }
    }

    /// Returns when everything that was written is on the disk.
    func synchronize() throws(SystemError) {
        guard fdatasync(descriptor) == 0 else { throw SystemError("fdatasync", code: errno) }
    }

    // MARK: - Finishing

    /// Turns a fragmented file into an ordinary one, after removing a fragment that a crash left incomplete. A finished file stays as it is: the process may
    /// have been killed after finishing it and before the summary was written. Returns its contents; nil if it has no sample.
    @discardableResult
    func finish() throws(SystemError) -> (samples: Int, duration: UInt64, timescale: UInt32)? {
        var scan = MovieScan(fileLength: length)
        while scan.outcome == nil {
            let bytes = try read(scan.wanted.length, at: scan.wanted.offset)
            scan.receive(bytes.span.bytes)
        }
        if scan.outcome == .finished { return try content() }
        guard case .fragments(let table) = scan.outcome, let end = table.finish() else { return nil }
        try truncate(to: table.end)
        try write(end.table.bytes, at: end.table.offset)
        // The header hides the fragments: the table must be there first.
        try synchronize()
        try write(end.header.bytes, at: end.header.offset)
        try synchronize()
        return (table.sampleCount, table.duration, table.timescale)
    }

    /// The contents of a finished file, by its table.
    private func content() throws(SystemError) -> (samples: Int, duration: UInt64, timescale: UInt32)? {
        var reader = MovieFileReader(fileLength: length)
        while !reader.isDone {
            let bytes = try read(reader.wanted.length, at: reader.wanted.offset)
            reader.receive(bytes.span.bytes)
        }
        guard let track = (try? reader.movie())?.tracks.first, let last = track.samples.last else { return nil }
        return (track.samples.count, UInt64(clamping: last.time + Int64(last.duration)), track.timescale)
    }
}

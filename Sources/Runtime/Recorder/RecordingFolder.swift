import Glibc
import NetworkIO

/// The folder of all recordings.
///
/// ```text
/// <root>/<room sid>/<recording sid>/recording.json         the contents (RecordingSummary), replaced as a whole
///                                   recording.copy.json    the same, some seconds old: during the recording, for use after a power loss
///                                   <track sid>.000.mp4    files, named by a template (FileNameTemplate)
///                                   <track sid>.jsonl      a track's log: a line for each sender report, gap, size …
///                                   <job sid>.mp4, .webm   the result of a job; files with other suffixes are incomplete
/// ```
/// Folders are ids that the server made; text that a client chose is only part of a file's name, and only its letters, digits, `_` and `-`.
struct RecordingFolder: Sendable {
    let root: String

    init(_ root: String) { self.root = root }

    /// Whether `name` is an id of the server, or a file name made from one: never a path.
    static func isSafe(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 240 && !name.hasPrefix(".")
            && name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
                    || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-")
            }
    }

    /// The folder of a recording.
    func folder(room: String, recording: String) -> String {
        precondition(Self.isSafe(room) && Self.isSafe(recording), "ids of the server's are names")
        return "\(root)/\(room)/\(recording)"
    }

    func make(_ folder: String) throws(SystemError) {
        do throws(SystemError) {
            try makeOnce(folder)
        } catch {
            // The room's folder was deleted with the room's last recording between the two steps.
            guard error.code == ENOENT else { throw error }
            try makeOnce(folder)
        }
    }

    private func makeOnce(_ folder: String) throws(SystemError) {
        var path = ""
        for part in folder.split(separator: "/", omittingEmptySubsequences: false) {
            path += path.isEmpty && part.isEmpty ? "" : (path.isEmpty && !folder.hasPrefix("/") ? "" : "/") + part
            guard !path.isEmpty, mkdir(path, 0o750) != 0, errno != EEXIST else { continue }
            throw SystemError("mkdir", code: errno)
        }
    }

    /// Replaces a file as a whole: whenever the process ends, there is the old content or the new one; `isDurable`: even if the power fails, for which
    /// it waits for the disk.
    func replace(_ path: String, with bytes: [UInt8], isDurable: Bool = true) throws(SystemError) {
        let new = path + ".new"
        unlink(new)
        do {
            let file = try OutputFile(new, isNew: true)
            try file.write(bytes, at: 0)
            // File systems may store the name before the bytes: after a power loss the file would be empty.
            if isDurable { try file.synchronize() }
        }
        guard rename(new, path) == 0 else { throw SystemError("rename", code: errno) }
        if isDurable { synchronizeNames(beside: path) }
    }

    /// Returns when the names in a file's folder are on the disk. A file system that does not support this is trusted.
    private func synchronizeNames(beside path: String) {
        guard let slash = path.lastIndex(of: "/") else { return }
        let descriptor = open(String(path[..<slash]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// When a file was last written, by the clock at that time, in milliseconds since 1970; nil if there is none.
    func written(_ path: String) -> Int64? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Int64(status.st_mtim.tv_sec) * 1_000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
    }

    /// The bytes of a file; nil if it cannot be read.
    func contents(_ path: String) -> [UInt8]? {
        guard let file = try? OutputFile(reading: path) else { return nil }
        return try? file.read(Int(file.length), at: 0)
    }

    /// Deletes a recording's folder, and its room's if that is empty.
    func delete(room: String, recording: String) {
        let folder = folder(room: room, recording: recording)
        for name in names(in: folder) { unlink("\(folder)/\(name)") }
        rmdir(folder)
        rmdir("\(root)/\(room)")
    }

    func remove(_ path: String) { unlink(path) }

    /// Removes the files of a job in a recording's folder, except its result.
    func removeLeftovers(of job: RecordingJob, in folder: String) {
        for name in names(in: folder) where name.hasPrefix(job.sid) && name != job.file?.name {
            remove("\(folder)/\(name)")
        }
    }

    /// Every recording: the id of its room and its own.
    func recordings() -> [(room: String, recording: String)] {
        names(in: root).flatMap { room in names(in: "\(root)/\(room)").map { (room, $0) } }
    }

    /// The names in a folder that the server may have made.
    func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if Self.isSafe(name) { names.append(name) }
        }
        return names.sorted()
    }

    /// Bytes that may still be written; nil if the folder cannot be examined.
    var freeBytes: Int64? {
        var status = statvfs()
        guard statvfs(root, &status) == 0 else { return nil }
        return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
    }
}

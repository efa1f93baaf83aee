import Glibc

/// Why a file cannot be used.
struct FileError: Error, Hashable {
    var problem: String
}

/// Files that the operator names, read whole.
enum FileContents {
    /// The bytes of a regular file.
    static func read(_ path: String, atMost limit: Int) throws(FileError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(problem: reason(path)) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileError(problem: reason(path)) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw FileError(problem: "is a directory; expected a file") }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { throw FileError(problem: reason(path)) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else { throw FileError(problem: "is larger than \(limit) bytes") }
        }
    }

    /// The system's error of the last call, and, for a name without a folder, where it was looked for.
    private static func reason(_ path: String) -> String {
        let words = String(cString: strerror(errno))
        guard errno == ENOENT, !path.hasPrefix("/"), let folder = getcwd(nil, 0) else {
            return "cannot be read: \(words)"
        }
        defer { free(folder) }
        return "cannot be read: \(words) (looked for in \(String(cString: folder)))"
    }

    /// Whether every user of the machine can read or write a file: its mode and those of all folders above it permit it.
    static func isExposed(_ path: String) -> Bool {
        guard let whole = realpath(path, nil) else { return false }
        defer { free(whole) }
        var path = String(cString: whole)
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & (S_IROTH | S_IWOTH) != 0 else { return false }
        while let slash = path.lastIndex(of: "/"), slash > path.startIndex {
            path = String(path[..<slash])
            guard stat(path, &status) == 0, status.st_mode & S_IXOTH != 0 else { return false }
        }
        return true
    }
}

import Glibc

/// Checks whether the server could write to the configured places, without creating anything.
enum WritablePlaces {
    /// Why recordings cannot be written to a folder, which is made if there is none, with those above it; nil if they can.
    static func refusalOfFolder(_ path: String) -> String? {
        var place = path
        while true {
            switch kind(of: place) {
            case .folder: return refusal(of: place, R_OK | W_OK | X_OK)
            case .other: return "'\(place)' is no folder"
            case .unreachable(let words): return "'\(place)': \(words)"
            case .nothing:
                guard let above = folder(above: place) else { return nil }
                place = above
            }
        }
    }

    /// Why a database cannot be kept in a file, which is made if there is none, but without the folder around it; nil if it can.
    ///
    /// `held`: the file in which this process has its database open. It is not opened here: closing any descriptor of a file releases all locks of the
    /// process on it (fcntl(2)), and without them the next program that opens the database deletes the log to which the server still writes.
    static func refusalOfDatabase(_ path: String, holding held: String? = nil) -> String? {
        switch kind(of: path) {
        case .folder: return "it is a folder"
        case .unreachable(let words): return words
        case .other:
            if let reason = refusal(of: path, R_OK | W_OK) { return reason }
            guard isSame(path, as: held) || isDatabase(path) else { return "it is a file of another kind" }
        case .nothing: break
        }
        // The transaction log is next to it.
        let around = folder(above: path) ?? "."
        return switch kind(of: around) {
        case .folder: refusal(of: around, W_OK | X_OK)
        case .other: "'\(around)' is no folder"
        case .unreachable(let words): "'\(around)': \(words)"
        case .nothing: "there is no folder '\(around)'"
        }
    }

    /// Whether a file is in a folder or below it, after resolving links, or would be there once it is made.
    static func isInside(_ path: String, folder: String) -> Bool {
        guard let root = resolved(folder), let place = resolved(path) ?? resolved(Self.folder(above: path) ?? ".")
        else { return false }
        return place == root || place.hasPrefix(root == "/" ? root : root + "/")
    }

    private static func resolved(_ path: String) -> String? {
        guard let bytes = realpath(path, nil) else { return nil }
        defer { free(bytes) }
        return String(cString: bytes)
    }

    private enum Kind {
        case nothing, folder, other
        case unreachable(String)
    }

    private static func kind(of path: String) -> Kind {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT ? .nothing : .unreachable(lastError) }
        return status.st_mode & S_IFMT == S_IFDIR ? .folder : .other
    }

    /// Checks access as the process's effective user, which is the one that opens files.
    private static func refusal(of path: String, _ mode: Int32) -> String? {
        faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? nil : "'\(path)': \(lastError)"
    }

    /// The folder that a path is in; nil above its first component.
    private static func folder(above path: String) -> String? {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        guard path != "/", path != "." else { return nil }
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Whether both paths lead to one file.
    private static func isSame(_ path: String, as other: String?) -> Bool {
        var one = stat()
        var two = stat()
        guard let other, stat(path, &one) == 0, stat(other, &two) == 0 else { return false }
        return one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// An empty file counts as a database, too.
    private static func isDatabase(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let wanted = Array("SQLite format 3\0".utf8)
        var bytes = [UInt8](repeating: 0, count: wanted.count)
        let count = read(descriptor, &bytes, bytes.count)
        return count == 0 || bytes == wanted
    }

    private static var lastError: String { String(cString: strerror(errno)) }
}

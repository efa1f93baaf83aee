import Glibc

/// The folder of files that may be played. A name leads to a file below it and never out of it.
///
/// Each component is opened separately, relative to the one before and without following links, so that a rename or a link meanwhile cannot lead elsewhere.
struct PlaybackFolder: Sendable {
    let root: String

    /// The maximum number of components, and bytes of a name: those of Linux.
    private static let maximumDepth = 16
    private static let maximumName = 255

    init(_ root: String) { self.root = root }

    /// The components of a name; nil if it is not a plain relative path.
    static func parts(of name: String) -> [String]? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= maximumDepth,
            parts.allSatisfy({ part in
                !part.isEmpty && part.utf8.count <= maximumName && part != "." && part != ".."
                    && !part.utf8.contains(0)
            })
        else { return nil }
        return parts.map(String.init)
    }

    /// The file with this name, which uses `/` between folders; nil if there is none that may be played.
    func open(_ name: String) -> PlayedFile? {
        guard let parts = Self.parts(of: name), let last = parts.last else { return nil }
        // The operator chooses the folder itself, which may be a link.
        var folder = Glibc.open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        for part in parts.dropLast() {
            guard folder >= 0 else { return nil }
            let next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            close(folder)
            folder = next
        }
        guard folder >= 0 else { return nil }
        defer { close(folder) }
        // A pipe without a writer must not block the player.
        return PlayedFile(descriptor: openat(folder, last, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK))
    }
}

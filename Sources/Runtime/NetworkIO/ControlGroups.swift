import Glibc

/// The control groups of this process, which may be those of a container, and their parents.
enum ControlGroups {
    /// The first lines of a file in each cgroup v2 group, and of another file in each group of one v1 controller's tree.
    /// `root` contains `/proc` and `/sys`.
    static func values(of file: String, orOf controller: String, _ older: String, root: String) -> [String] {
        var values: [String] = []
        for line in lines(of: root + "/proc/self/cgroup") {
            // "0::/system.slice/martlet.service" of v2, "9:memory:/docker/0123" of v1.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let isOlder = fields[1].split(separator: ",").contains { $0 == controller }
            guard fields[1].isEmpty || isOlder else { continue }
            let (tree, name) = isOlder ? ("/sys/fs/cgroup/\(controller)", older) : ("/sys/fs/cgroup", file)
            var parts = fields[2].split(separator: "/")
            while true {
                let path = root + tree + parts.map { "/" + $0 }.joined() + "/" + name
                if let value = lines(of: path).first { values.append(value) }
                guard parts.popLast() != nil else { break }
            }
        }
        return values
    }

    static func lines(of path: String) -> [String] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var lines: [String] = []
        var buffer = [CChar](repeating: 0, count: 4_096)
        while fgets(&buffer, CInt(buffer.count), file) != nil {
            lines.append(
                String(decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return lines
    }
}

import CLinux
import Glibc

/// How much memory this process may use.
public enum MachineMemory {
    /// The minimum of the machine's memory and the limits of the process's control groups (cgroup v2 and v1); nil where the kernel reports neither.
    /// `root` contains `/proc` and `/sys`.
    public static func limitBytes(root: String = "") -> UInt64? {
        let limits = groupLimits(root: root) + [machineBytes(root: root)].compactMap { $0 }
        return limits.min()
    }

    /// The process's current resident memory; 0 where the kernel does not report it.
    public static func residentBytes() -> UInt64 {
        let fields = lines(of: "/proc/self/statm").first?.split(separator: " ") ?? []
        return fields.count > 1 ? (UInt64(fields[1]) ?? 0) * UInt64(sysconf(Int32(_SC_PAGESIZE))) : 0
    }

    /// Returns freed memory to the system. The allocator keeps free memory between allocations in use, however much it is; while it returns memory, a
    /// thread that allocates from the same arena waits.
    public static func giveBack() { clinux_trim_heap() }

    private static func machineBytes(root: String) -> UInt64? {
        // "MemTotal:        8123456 kB"
        let fields = lines(of: root + "/proc/meminfo").first { $0.hasPrefix("MemTotal:") }?.split(separator: " ") ?? []
        return fields.count > 1 ? UInt64(fields[1]).map { $0 << 10 } : nil
    }

    /// The limits of the process's groups and of those around them.
    private static func groupLimits(root: String) -> [UInt64] {
        var limits: [UInt64] = []
        for line in lines(of: root + "/proc/self/cgroup") {
            // "0::/system.slice/martlet.service" of v2, "9:memory:/docker/0123" of v1.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let isMemory = fields[1].split(separator: ",").contains("memory")
            guard fields[1].isEmpty || isMemory else { continue }
            let (tree, file) =
                isMemory ? ("/sys/fs/cgroup/memory", "memory.limit_in_bytes") : ("/sys/fs/cgroup", "memory.max")
            var parts = fields[2].split(separator: "/")
            while true {
                let path = root + tree + parts.map { "/" + $0 }.joined() + "/" + file
                // "max" and, of v1, a number beyond any machine stand for none.
                if let limit = lines(of: path).first.flatMap({ UInt64($0) }), limit < 1 << 62 { limits.append(limit) }
                guard parts.popLast() != nil else { break }
            }
        }
        return limits
    }

    private static func lines(of path: String) -> [String] {
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

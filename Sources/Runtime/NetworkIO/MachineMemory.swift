import CLinux
import Glibc

/// How much memory this process may use.
public enum MachineMemory {
    /// The minimum of the machine's memory and the limits of the process's control groups (cgroup v2 and v1); nil if the kernel reports neither.
    /// `root` contains `/proc` and `/sys`.
    public static func limitBytes(root: String = "") -> UInt64? {
        let groups = ControlGroups.values(of: "memory.max", orOf: "memory", "memory.limit_in_bytes", root: root)
        // "max" and, in v1, a number beyond any machine mean no limit.
        let limits = groups.compactMap { UInt64($0) }.filter { $0 < 1 << 62 }
        return (limits + [machineBytes(root: root)].compactMap { $0 }).min()
    }

    /// The process's current resident memory; 0 if the kernel does not report it.
    public static func residentBytes() -> UInt64 {
        let fields = ControlGroups.lines(of: "/proc/self/statm").first?.split(separator: " ") ?? []
        return fields.count > 1 ? (UInt64(fields[1]) ?? 0) * UInt64(sysconf(Int32(_SC_PAGESIZE))) : 0
    }

    /// Returns freed memory to the system. The allocator keeps any amount of free memory between allocations in use; while it returns memory, a
    /// thread that allocates from the same arena waits.
    public static func giveBack() { clinux_trim_heap() }

    private static func machineBytes(root: String) -> UInt64? {
        // "MemTotal:        8123456 kB"
        let line = ControlGroups.lines(of: root + "/proc/meminfo").first { $0.hasPrefix("MemTotal:") }
        let fields = line?.split(separator: " ") ?? []
        return fields.count > 1 ? UInt64(fields[1]).map { $0 << 10 } : nil
    }
}

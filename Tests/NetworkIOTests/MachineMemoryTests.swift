import Foundation
import NetworkIO
import Testing

@Suite("Limits of the machine and of the control groups")
struct MachineMemoryTests {
    private func limit(_ files: [String: String]) throws -> UInt64? {
        try reading(files, MachineMemory.limitBytes)
    }

    /// What is read of a machine with these files.
    private func reading<Value>(_ files: [String: String], _ read: (String) -> Value) throws -> Value {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("memory-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (path, text) in files {
            let url = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        return read(root.path)
    }

    private let machine = ["proc/meminfo": "MemTotal:        8000000 kB\nMemFree: 1 kB\n"]

    @Test("Without a control group it is the machine's memory")
    func whole() throws {
        #expect(try limit(machine) == 8_000_000 << 10)
        #expect(try limit([:]) == nil)
    }

    @Test("A container's limit counts, and that of an enclosing group")
    func groups() throws {
        let inside = machine.merging(["proc/self/cgroup": "0::/a/b\n"]) { $1 }
        #expect(try limit(inside.merging(["sys/fs/cgroup/a/b/memory.max": "536870912\n"]) { $1 }) == 536_870_912)
        let around = ["sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1000000\n"]
        #expect(try limit(inside.merging(around) { $1 }) == 1_000_000)
        let top = ["proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "7\n"]
        #expect(try limit(machine.merging(top) { $1 }) == 7)
    }

    @Test("A container's share of processor time counts, rounded up, and that of an enclosing group")
    func processors() throws {
        let all = Processors.usable.count
        func count(_ files: [String: String]) throws -> Int {
            try reading(files.merging(["proc/self/cgroup": "0::/a/b\n"]) { $1 }, Processors.busyAtOnce)
        }
        #expect(try count([:]) == all)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "max 100000\n"]) == all)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "100000 100000\n"]) == 1)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "5000 100000\n"]) == 1)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "110000 100000\n"]) == min(all, 2))
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "1 9\n"]) == 1)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "100000000 1000\n"]) == all)
        #expect(try count(["sys/fs/cgroup/a/b/cpu.max": "what\n"]) == all)
    }

    @Test("cgroup v1: the group of the memory controller, and its value for no limit")
    func older() throws {
        let inside = machine.merging(["proc/self/cgroup": "11:cpu,cpuacct:/x\n9:memory:/docker/1\n"]) { $1 }
        let path = "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes"
        #expect(try limit(inside.merging([path: "9223372036854771712\n"]) { $1 }) == 8_000_000 << 10)
        #expect(try limit(inside.merging([path: "268435456\n"]) { $1 }) == 268_435_456)
    }
}

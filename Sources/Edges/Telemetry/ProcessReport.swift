import Glibc

/// What the kernel says of this process, under the names that Prometheus' own libraries use.
struct ProcessReport: Sendable {
    var cpuSeconds: Double = 0
    var residentBytes: UInt64 = 0
    var openDescriptors = 0
    var descriptorLimit: UInt64 = 0
    var threads = 0

    /// Asks the kernel now; what it does not tell stays 0.
    static func now() -> ProcessReport {
        var report = ProcessReport()
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
            report.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            report.descriptorLimit = UInt64(limit.rlim_cur)
        }
        let pages = firstLine(of: "/proc/self/statm").split(separator: " ").map { UInt64($0) ?? 0 }
        if pages.count > 1 { report.residentBytes = pages[1] * UInt64(sysconf(Int32(_SC_PAGESIZE))) }
        report.openDescriptors = entries(of: "/proc/self/fd")
        report.threads = entries(of: "/proc/self/task")
        return report
    }

    private static func firstLine(of path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, CInt(line.count), file) != nil else { return "" }
        return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func entries(of path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // "." and ".."
        return max(0, count - 2)
    }
}

extension MetricsPage {
    /// What the process uses.
    mutating func add(process: ProcessReport) {
        add(
            name: "process_cpu_seconds_total", .counter, "User and system CPU time in seconds.",
            [([], process.cpuSeconds)])
        add(
            name: "process_resident_memory_bytes", .gauge, "Resident memory in bytes.",
            [([], Double(process.residentBytes))])
        add(name: "process_open_fds", .gauge, "Open file descriptors.", [([], Double(process.openDescriptors))])
        add(name: "process_max_fds", .gauge, "Maximum open file descriptors.", [([], Double(process.descriptorLimit))])
        add(name: "process_threads", .gauge, "Threads.", [([], Double(process.threads))])
    }
}

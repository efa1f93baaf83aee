import Glibc

/// What the kernel reports about this process, under the names that Prometheus' own libraries use.
struct ProcessReport: Sendable {
    var cpuSeconds: Double = 0
    var residentBytes: UInt64 = 0
    var openDescriptors = 0
    var descriptorLimit: UInt64 = 0
    var threads = 0
    /// Seconds since 1970; 0 if the kernel does not report it.
    var startedAt: Double = 0

    /// Asks the kernel now; what it does not report stays 0.
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
        report.startedAt = startTime
        return report
    }

    /// proc(5): field 22 of /proc/self/stat counts ticks since the machine's start, whose time is `btime` in /proc/stat. The name in field 2 may hold anything,
    /// so fields are counted from its closing parenthesis.
    private static let startTime: Double = {
        let fields = firstLine(of: "/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 19, let ticks = Double(fields[19]), let booted = bootTime else { return 0 }
        return booted + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static var bootTime: Double? {
        guard let file = fopen("/proc/stat", "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 65_536)
        while fgets(&line, CInt(line.count), file) != nil {
            let text = String(
                decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix("btime ") { return Double(text.dropFirst(6)) }
        }
        return nil
    }

    private static func firstLine(of path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1_024)
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
        add(
            name: "process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.",
            [([], process.startedAt)])
        add(name: "process_threads", .gauge, "Threads.", [([], Double(process.threads))])
    }
}

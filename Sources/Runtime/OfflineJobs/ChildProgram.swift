import CLinux
import Glibc
import NetworkIO
import Primitives

/// A program that runs at the lowest priority, as a separate process with limits. It ends with the thread that began it.
struct ChildProgram {
    private let path: String
    private let folder: String
    private let memoryBytes: UInt64

    /// How it ended.
    struct End: Equatable {
        /// Its exit code, or 128 plus the signal.
        var code: Int32
        /// Its last message.
        var words: String
        var processorTime: TimeSpan

        /// It could not begin, for the system's reason `code`; the message is that of a shell.
        static func notBegun(_ code: Int32) -> End {
            End(code: 127, words: "cannot begin: \(String(cString: strerror(code)))", processorTime: .zero)
        }
    }

    private static let lookInterval: Int32 = 200
    private static let longestWords = 4_096
    /// A program must not see this process's keys and paths.
    private static let environment = ["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"]

    /// The program at `path`, which runs in `folder`.
    init(_ path: String, folder: String, memoryBytes: UInt64) {
        self.path = path
        self.folder = folder
        self.memoryBytes = memoryBytes
    }

    /// Runs it until it ends; `output` gets its output. It is killed when `fault` returns one, which is then thrown. Blocks.
    func run(
        _ arguments: [String], fault: () -> JobFault?, output: (ArraySlice<UInt8>) -> Void
    ) throws(JobFault) -> End {
        guard let (out, outEnd) = Self.pipe() else { return .notBegun(errno) }
        guard let (err, errEnd) = Self.pipe() else {
            let code = errno
            for end in [out, outEnd] { close(end) }
            return .notBegun(code)
        }
        defer { for end in [out, err] { close(end) } }
        let child = Self.withStrings([path] + arguments) { arguments in
            Self.withStrings(Self.environment) { environment in
                clinux_spawn_idle(path, arguments, environment, folder, outEnd, errEnd, memoryBytes)
            }
        }
        let code = errno
        for end in [outEnd, errEnd] { close(end) }
        guard child > 0 else { return .notBegun(code) }
        var words: [UInt8] = []
        let found = watch(child, out, err, fault, output) { bytes in
            words += bytes
            words.removeFirst(max(0, words.count - Self.longestWords))
        }
        if let found { throw found }
        return try wait(for: child, fault, String(decoding: words, as: UTF8.self))
    }

    /// Passes on its output until it ends; returns the fault for which it was killed.
    private func watch(
        _ child: pid_t, _ out: Int32, _ err: Int32, _ fault: () -> JobFault?, _ output: (ArraySlice<UInt8>) -> Void,
        _ said: (ArraySlice<UInt8>) -> Void
    ) -> JobFault? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var open = [out, err]
        while !open.isEmpty {
            if let found = fault() {
                end(child)
                return found
            }
            var wanted = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&wanted, nfds_t(wanted.count), Self.lookInterval) > 0 else { continue }
            for ready in wanted where ready.revents != 0 {
                let count = read(ready.fd, &buffer, buffer.count)
                if count > 0 {
                    if ready.fd == out { output(buffer[..<count]) } else { said(buffer[..<count]) }
                } else if count == 0 || errno != EINTR {
                    open.removeAll { $0 == ready.fd }
                }
            }
        }
        return nil
    }

    private func wait(for child: pid_t, _ fault: () -> JobFault?, _ words: String) throws(JobFault) -> End {
        var status: Int32 = 0
        var usage = rusage()
        while true {
            let ended = wait4(child, &status, WNOHANG, &usage)
            if ended == child { break }
            if ended < 0, errno != EINTR { throw .programFailed }
            if let found = fault() {
                end(child)
                throw found
            }
            usleep(10_000)
        }
        let seconds = Int64(usage.ru_utime.tv_sec) + Int64(usage.ru_stime.tv_sec)
        let microseconds = Int64(usage.ru_utime.tv_usec) + Int64(usage.ru_stime.tv_usec)
        return End(
            code: clinux_exit_code(status), words: words,
            processorTime: .microseconds(seconds * 1_000_000 + microseconds))
    }

    private func end(_ child: pid_t) {
        kill(child, SIGKILL)
        while waitpid(child, nil, 0) < 0, errno == EINTR {}
    }

    private static func pipe() -> (Int32, Int32)? {
        var ends: [Int32] = [0, 0]
        return clinux_pipe(&ends) == 0 ? (ends[0], ends[1]) : nil
    }

    /// The texts as a C array: pointers terminated by a null pointer.
    private static func withStrings<Result>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        let copies: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
        defer { for copy in copies { free(copy) } }
        return copies.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}

import Dispatch
import Glibc

/// SIGTERM and SIGINT as something that can be awaited.
enum Signals {
    /// Returns when the process is asked to end. A second signal ends it at once, the hard way.
    static func untilAskedToEnd() async {
        signal(SIGPIPE, SIG_IGN)
        let (stream, continuation) = AsyncStream<Int32>.makeStream()
        let sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield(number) }
            source.resume()
            return source
        }
        for await _ in stream { break }
        for source in sources { source.cancel() }
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
    }
}

/// How many files and sockets the process may have open.
enum OpenFiles {
    /// Takes all that the system allows: each signalling socket needs one, and the usual soft limit is 1,024.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

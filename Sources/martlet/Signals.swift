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

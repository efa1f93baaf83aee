import Dispatch
import Glibc

/// SIGTERM, SIGINT and SIGHUP as something that can be awaited.
enum Signals {
    enum Request: Sendable {
        case end, reload
    }

    /// SIGHUP ends no server that is starting. `isInteractive`: it ends this one, whose terminal was closed.
    static func prepare(isInteractive: Bool) {
        signal(SIGPIPE, SIG_IGN)
        if !isInteractive { signal(SIGHUP, SIG_IGN) }
    }

    /// Calls `reload` for each SIGHUP, and returns when the process is asked to end. A second signal then ends it at once, the hard way.
    static func untilAskedToEnd(isInteractive: Bool, reload: () async -> Void) async {
        let (stream, continuation) = AsyncStream<Request>.makeStream()
        let numbers = isInteractive ? [SIGTERM, SIGINT] : [SIGTERM, SIGINT, SIGHUP]
        let sources = numbers.map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield(number == SIGHUP ? .reload : .end) }
            source.resume()
            return source
        }
        for await request in stream {
            guard case .reload = request else { break }
            await reload()
        }
        for source in sources { source.cancel() }
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
    }
}

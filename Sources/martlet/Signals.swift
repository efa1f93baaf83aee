import Dispatch
import Glibc

/// SIGTERM, SIGINT and SIGHUP as something that can be awaited.
enum Signals {
    enum Request: Sendable {
        case end, reload
    }

    /// A server that is starting ends at once when it is asked to: nobody is in it yet. SIGHUP ends none that is starting, unless
    /// `isInteractive`: its terminal was closed.
    static func prepare(isInteractive: Bool) {
        signal(SIGPIPE, SIG_IGN)
        if !isInteractive { signal(SIGHUP, SIG_IGN) }
        for number in [SIGTERM, SIGINT] { signal(number, endAtOnce) }
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
        for number in [SIGTERM, SIGINT] { signal(number, endAtOnce) }
    }
}

/// Ends the process as the signal would by itself. The kernel keeps that from process 1, which the server is in a container: it exits instead,
/// with the status that shells have for it. A named function, because a closure literal handed to C may be taken for main-actor code.
private func endAtOnce(_ number: Int32) {
    signal(number, SIG_DFL)
    // It is blocked while it is handled.
    var this = sigset_t()
    sigemptyset(&this)
    sigaddset(&this, number)
    pthread_sigmask(SIG_UNBLOCK, &this, nil)
    raise(number)
    _exit(128 + number)
}

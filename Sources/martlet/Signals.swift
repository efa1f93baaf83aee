import Dispatch
import Glibc
import NetworkIO
import Synchronization

/// SIGTERM, SIGINT and SIGHUP as something that can be awaited.
///
/// A handler catches them and writes them to a pipe, where they stay until they are read. A signal source of Dispatch ignores those that arrive before
/// its thread has run: on a busy machine, a server that was asked to end in its first 0.1 s continued to serve.
struct Signals {
    private enum Request: Sendable {
        case end, reload
    }

    private let isInteractive: Bool
    private let readEnd: Int32

    /// A server that is still starting ends at once when it is asked to: it has no participants yet. SIGHUP does not end it: it may have read the file before
    /// it was changed, and reloads it as soon as it runs. With `isInteractive`, SIGHUP ends it, because its terminal was closed.
    init(isInteractive: Bool) throws(CommandError) {
        self.isInteractive = isInteractive
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw CommandError(message: "martlet: \(SystemError("pipe", code: errno))", exitCode: 1)
        }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        readEnd = ends[0]
        caughtSignals.store(ends[1], ordering: .relaxed)
        signal(SIGPIPE, SIG_IGN)
        if !isInteractive { signal(SIGHUP, catchSignal) }
        for number in [SIGTERM, SIGINT] { signal(number, endAtOnce) }
    }

    /// Calls `reload` for each SIGHUP, one after the other, and returns when the process is asked to end, even while a reload waits for something: that reload
    /// is cancelled and not awaited. A second signal then ends the process at once.
    func untilAskedToEnd(reload: @escaping @Sendable () async -> Void) async {
        for number in isInteractive ? [SIGTERM, SIGINT] : [SIGTERM, SIGINT, SIGHUP] { signal(number, catchSignal) }
        let (stream, continuation) = AsyncStream<Request>.makeStream()
        let source = DispatchSource.makeReadSource(fileDescriptor: readEnd, queue: .global())
        source.setEventHandler { [readEnd] in
            var number: UInt8 = 0
            while read(readEnd, &number, 1) == 1 { continuation.yield(Int32(number) == SIGHUP ? .reload : .end) }
        }
        source.resume()
        // One waiting reload is enough: it reads the file when it begins.
        let (asked, reloads) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let reloading = Task { for await _ in asked { await reload() } }
        for await request in stream {
            guard case .reload = request else { break }
            reloads.yield()
        }
        reloads.finish()
        reloading.cancel()
        for number in [SIGTERM, SIGINT] { signal(number, endAtOnce) }
        // The pipe stays until the process has ended: a SIGHUP may still be written to it.
        source.cancel()
    }
}

/// The pipe to which caught signals are written.
private let caughtSignals = Atomic<Int32>(-1)

/// Runs on any thread between any two instructions: it may call only what signal-safety(7) lists.
private func catchSignal(_ number: Int32) {
    let before = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(caughtSignals.load(ordering: .relaxed), &byte, 1)
    errno = before
}

/// Ends the process as the signal would by default. The kernel prevents that for process 1, which the server is in a container: it exits instead,
/// with the status that shells use for the signal. A named function, because a closure literal passed to C may be treated as main-actor code.
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

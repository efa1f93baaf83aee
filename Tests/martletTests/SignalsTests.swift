import Glibc
import Testing

@testable import martlet

@Suite("Signals", .timeLimit(.minutes(1)))
struct SignalsTests {
    @Test("K2: SIGHUP to a server that is starting is a reload as soon as it runs")
    func reloadWhileStarting() async throws {
        let signals = try Signals(isInteractive: false)
        Self.send(SIGHUP)
        // Without a reload nobody asks it to end.
        await signals.untilAskedToEnd { Self.send(SIGTERM) }
    }

    /// Has the handler run before this returns: Dispatch's threads, on which tests run, have all signals blocked.
    private static func send(_ number: Int32) {
        var one = sigset_t()
        var former = sigset_t()
        sigemptyset(&one)
        sigaddset(&one, number)
        pthread_sigmask(SIG_UNBLOCK, &one, &former)
        raise(number)
        pthread_sigmask(SIG_SETMASK, &former, nil)
    }
}

import Glibc
import Testing

@testable import martlet

@Suite("Signals", .timeLimit(.minutes(1)))
struct SignalsTests {
    @Test("K2: SIGHUP to a server that is starting is a reload as soon as it runs")
    func reloadWhileStarting() async throws {
        let signals = try Signals(isInteractive: false)
        raise(SIGHUP)
        // Without a reload nobody asks it to end.
        await signals.untilAskedToEnd { _ = raise(SIGTERM) }
    }
}

import NetworkIO
import Primitives
import Synchronization

@testable import HTTPServing

/// A clock that stands until a test moves it, so that no test waits for a timeout and none fails because a machine is slow.
final class ManualClock: Sendable {
    private let state = Mutex<(time: MonotonicTime, released: MonotonicTime?)>(
        (MonotonicTime(milliseconds: 1_000_000), nil))

    var now: MonotonicTime {
        state.withLock { state in
            guard let released = state.released else { return state.time }
            return state.time + (MonotonicClock.now() - released)
        }
    }

    /// Moves time on, and returns when the server has acted on it.
    func advance(by interval: TimeSpan, _ server: HTTPServer) async {
        state.withLock { $0.time = $0.time + interval }
        await server.finishTurn()
    }

    /// Lets time pass by itself: the server stops.
    func release() { state.withLock { $0.released = MonotonicClock.now() } }
}

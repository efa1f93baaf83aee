import CLoadIO
import NetworkIO
import Synchronization

/// Measures the reference packet through a run: a burst of rounds four times a second, on a thread of its own.
final class ReferenceSampler: Sendable {
    private static let rounds: Int32 = 100
    private let state = Mutex(State())

    private struct State {
        var samples: [Double] = []
        var isRunning = false
        var thread: LoopThread?
    }

    func start() {
        state.withLock { $0.isRunning = true }
        let thread = try? LoopThread(name: "reference", cpu: nil) {
            while self.state.withLock({ $0.isRunning }) {
                let nanoseconds = loadio_reference_packet(Self.rounds)
                if nanoseconds > 0 { self.state.withLock { $0.samples.append(nanoseconds / 1_000) } }
                sleepMilliseconds(250)
            }
        }
        state.withLock { $0.thread = thread }
    }

    func stop() {
        let thread = state.withLock { state in
            state.isRunning = false
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
    }

    /// Microseconds of CPU, the median of all samples and the last one.
    var median: Double { state.withLock { $0.samples.sorted() }.middle }
    var last: Double { state.withLock { $0.samples.last ?? 0 } }
}

extension [Double] {
    /// The value in the middle of a sorted list.
    var middle: Double { isEmpty ? 0 : self[count / 2] }
}

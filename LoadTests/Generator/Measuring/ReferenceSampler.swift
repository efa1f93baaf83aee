import Measuring
import NetworkIO
import Synchronization

/// Measures the reference packet through a run: a burst of packets four times per second, on its own thread.
final class ReferenceSampler: Sendable {
    private let state = Mutex(State())

    private struct State {
        var samples: [Double] = []
        var time: Int64 = 0
        var isRunning = false
        var thread: LoopThread?
    }

    func start() {
        state.withLock { $0.isRunning = true }
        let thread = try? LoopThread(name: "reference", cpu: nil) {
            guard let packet = ReferencePacket() else { return }
            while self.state.withLock({ $0.isRunning }) {
                let microseconds = packet.sample() / 1_000
                self.state.withLock {
                    $0.samples.append(microseconds)
                    $0.time = ProcessorTime.thread
                }
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

    /// CPU time of the sampling itself in nanoseconds: it measures the machine and is not part of the load.
    var time: Int64 { state.withLock { $0.time } }

    /// Microseconds of CPU, the median of all samples and the last one.
    var median: Double { state.withLock { $0.samples.sorted() }.middle }
    var last: Double { state.withLock { $0.samples.last ?? 0 } }
}

extension [Double] {
    /// The median of a sorted list.
    var middle: Double { isEmpty ? 0 : (self[(count - 1) / 2] + self[count / 2]) / 2 }
}

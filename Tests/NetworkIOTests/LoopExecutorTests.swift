import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import NetworkIO

@Suite("The loop as an executor", .timeLimit(.minutes(1)))
struct LoopExecutorTests {
    /// Counts how often a job begins while another is not over.
    private actor Probe {
        private nonisolated let executor: LoopExecutor
        private nonisolated let counts = Mutex((inside: 0, overlaps: 0, done: 0))
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        nonisolated var overlaps: Int { counts.withLock { $0.overlaps } }
        nonisolated var done: Int { counts.withLock { $0.done } }

        init(_ executor: LoopExecutor) { self.executor = executor }

        private nonisolated func enter() {
            counts.withLock { counts in
                counts.inside += 1
                if counts.inside > 1 { counts.overlaps += 1 }
            }
        }

        private nonisolated func leave() {
            counts.withLock { counts in
                counts.inside -= 1
                counts.done += 1
            }
        }

        /// Works until another job has begun, or for as long as one that may begin has had time to.
        func hold(_ began: Gate, until other: DispatchSemaphore) {
            enter()
            began.open()
            _ = other.wait(timeout: .now() + .milliseconds(200))
            leave()
        }

        func touch(_ other: DispatchSemaphore) {
            enter()
            other.signal()
            leave()
        }
    }

    @Test("Jobs that arrive while the loop ends, and after it, run one at a time and none is lost")
    func jobsBehindTheEnd() async throws {
        let executor = try LoopExecutor()
        let probe = Probe(executor)
        let began = Gate()
        let other = DispatchSemaphore(value: 0)
        async let held: Void = probe.hold(began, until: other)
        let thread = try LoopThread(name: "test", cpu: nil) {
            executor.adoptThread()
            // The first job is there: the last turn.
            var posted = pollfd(fd: executor.wake.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&posted, 1, -1)
            var jobs: [LoopExecutor.Job] = []
            executor.retire(&jobs)
        }
        await began.wait()
        await withTaskGroup { group in
            for _ in 0..<4 { group.addTask { await probe.touch(other) } }
        }
        await held
        thread.join()
        await probe.touch(other)
        #expect(probe.overlaps == 0)
        #expect(probe.done == 6)
    }
    /// The sanitizers report a use after the end (`make nightly`); a plain build may not notice it.
    @Test("Jobs after the end of the loop, each the last use of its actor and its executor, all run, a thousand times")
    func lastUse() async throws {
        var done = 0
        for _ in 0..<1_000 {
            let probe = try Self.retiredProbe()
            await probe.touch(DispatchSemaphore(value: 0))
            done += probe.done
        }
        #expect(done == 1_000)
    }

    /// A probe whose loop has ended.
    private static func retiredProbe() throws -> Probe {
        let executor = try LoopExecutor()
        var jobs: [LoopExecutor.Job] = []
        executor.retire(&jobs)
        return Probe(executor)
    }
}

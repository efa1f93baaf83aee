public import MediaControl
public import MediaWorkers
import NetworkIO
public import Primitives

/// The real media plane: a pool of workers.
public struct WorkerPoolPlane: MediaPlane {
    private let pool: MediaWorkerPool

    /// The plane of `pool`.
    public init(_ pool: MediaWorkerPool) { self.pool = pool }

    /// The pool's certificate.
    public var fingerprintSHA256: [UInt8] { pool.fingerprintSHA256 }

    /// The pool's addresses with the worker's port.
    public func candidates(of worker: WorkerIndex) -> [SocketAddress] {
        pool.candidates(of: pool.workers[worker.rawValue])
    }

    /// The worker's own TCP port, and the shared one.
    public func tcpCandidates(of worker: WorkerIndex) -> [SocketAddress] {
        pool.tcpCandidates(of: pool.workers[worker.rawValue])
    }

    /// By the pool's own measure of load.
    public func leastLoadedWorker(except excluded: Set<WorkerIndex>) -> WorkerIndex? {
        pool.leastLoadedWorker(except: Set(excluded.map(\.rawValue))).map { WorkerIndex($0.index) }
    }

    /// According to the pool's watchdog.
    public func hangs(_ worker: WorkerIndex) -> Bool { pool.hangs(worker.rawValue) }

    /// Posts to the worker's loop.
    public nonisolated(nonsending) func apply(
        _ commands: [MediaCommand], on worker: WorkerIndex
    ) async throws(WorkerHangs) {
        try await pool.apply(commands, on: worker.rawValue)
    }

    /// Posts to the worker's loop.
    public func post(_ commands: [MediaCommand], on worker: WorkerIndex) { pool.post(commands, on: worker.rawValue) }

    /// Queries the worker.
    public func report(_ scope: ReportScope, on worker: WorkerIndex) async throws(WorkerHangs) -> MediaReport? {
        try await pool.report(scope, on: worker.rawValue)
    }

    /// The pool's events.
    public var events: AsyncStream<[MediaEvent]> { pool.events }
    /// CLOCK_MONOTONIC.
    public func now() -> MonotonicTime { MonotonicClock.now() }
    /// CLOCK_REALTIME.
    public func wallClockMilliseconds() -> Int64 { MonotonicClock.wallMilliseconds() }
}

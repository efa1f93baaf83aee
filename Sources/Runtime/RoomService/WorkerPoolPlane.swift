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

    /// By the pool's own measure of load.
    public func leastLoadedWorker() -> WorkerIndex? { WorkerIndex(pool.leastLoadedWorker().index) }

    /// Enters the worker's actor.
    public nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async {
        await pool.workers[worker.rawValue].apply(commands)
    }

    /// Asks the worker.
    public func roomStatistics(_ room: RoomID, on worker: WorkerIndex) async -> RoomStatistics? {
        await pool.workers[worker.rawValue].roomStatistics(room)
    }

    /// Asks the worker.
    public func decisions(of peers: [PeerID], on worker: WorkerIndex) async -> DecisionHistory {
        await pool.workers[worker.rawValue].decisions(of: peers)
    }

    /// Asks the worker.
    public func downlinkReports(of peers: [PeerID], on worker: WorkerIndex) async -> [DownlinkReport] {
        await pool.workers[worker.rawValue].downlinkReports(of: peers)
    }

    /// The pool's events.
    public var events: AsyncStream<[MediaEvent]> { pool.events }
    /// CLOCK_MONOTONIC.
    public func now() -> MonotonicTime { MonotonicClock.now() }
    /// CLOCK_REALTIME.
    public func wallClockMilliseconds() -> Int64 { MonotonicClock.wallMilliseconds() }
}

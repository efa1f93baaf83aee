public import MediaControl
public import MediaWorkers
public import Primitives

/// Names one media worker.
public struct WorkerIndex: Sendable, Hashable, Comparable {
    /// From 0.
    public let rawValue: Int

    /// The worker number `rawValue`, from 0.
    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// By number.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// The interface of the media workers to RoomHost; the real pool and the fake of tests both implement it.
///
/// Everything that waits for a worker fails when it hangs, within `Watchdog.patience` plus a second.
/// `apply` runs on the caller's actor until it reaches the worker: so batches arrive in the order in which an actor sends them.
public protocol MediaPlane: Sendable {
    /// SHA-256 of the certificate that every worker presents.
    var fingerprintSHA256: [UInt8] { get }
    /// Candidate addresses of `worker` for answers, most preferred first.
    func candidates(of worker: WorkerIndex) -> [SocketAddress]
    /// The worker with the least load, except those in `excluded`; nil if none can take more.
    func leastLoadedWorker(except excluded: Set<WorkerIndex>) -> WorkerIndex?
    /// Addresses at which `worker` accepts TCP connections (RFC 6544), most preferred first.
    func tcpCandidates(of worker: WorkerIndex) -> [SocketAddress]
    /// Whether a worker is known to hang.
    func hangs(_ worker: WorkerIndex) -> Bool
    /// Carries out the commands in order, before anything sent later; returns when that is done. If the worker hangs, it is done when it
    /// recovers, and the call does not wait for that.
    nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async throws(WorkerHangs)
    /// Like `apply`, but returns at once.
    func post(_ commands: [MediaCommand], on worker: WorkerIndex)
    /// The report of `scope`; nil for a room that the worker does not know.
    func report(_ scope: ReportScope, on worker: WorkerIndex) async throws(WorkerHangs) -> MediaReport?
    /// Events, from each worker in order.
    var events: AsyncStream<[MediaEvent]> { get }
    /// The monotonic clock; the only one that RoomHost reads.
    func now() -> MonotonicTime
    /// Milliseconds since 1970, for reports.
    func wallClockMilliseconds() -> Int64
}

extension MediaPlane {
    /// A plane without sockets accepts none.
    public func tcpCandidates(of worker: WorkerIndex) -> [SocketAddress] { [] }

    /// Without threads, no worker can hang.
    public func hangs(_ worker: WorkerIndex) -> Bool { false }
}

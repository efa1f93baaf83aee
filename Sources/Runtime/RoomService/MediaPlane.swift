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

/// What RoomHost needs of the media workers; the real pool and the fake of tests both speak it.
///
/// Whatever waits for a worker fails when it hangs, within `Watchdog.patience` and a second.
/// `apply` runs on the caller's actor until it reaches the worker: so batches arrive in the order in which an actor calls.
public protocol MediaPlane: Sendable {
    /// SHA-256 of the certificate that every worker shows.
    var fingerprintSHA256: [UInt8] { get }
    /// Addresses that answers name as candidates of `worker`, the most wanted first.
    func candidates(of worker: WorkerIndex) -> [SocketAddress]
    /// The worker with the least to do, without those in `excluded`; nil when none can take more.
    func leastLoadedWorker(except excluded: Set<WorkerIndex>) -> WorkerIndex?
    /// Addresses at which `worker` accepts TCP connections (RFC 6544), the most wanted first.
    func tcpCandidates(of worker: WorkerIndex) -> [SocketAddress]
    /// Whether a worker is known to answer nothing.
    func hangs(_ worker: WorkerIndex) -> Bool
    /// Carries the commands out in their order, before anything sent later; returns when that is done. Where the worker hangs it is done when it comes
    /// back, and nobody waits for that.
    nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async throws(WorkerHangs)
    /// As `apply`, but returns at once.
    func post(_ commands: [MediaCommand], on worker: WorkerIndex)
    /// What `scope` asks for; nil for a room that the worker does not know.
    func report(_ scope: ReportScope, on worker: WorkerIndex) async throws(WorkerHangs) -> MediaReport?
    /// What happened, from each worker, in order.
    var events: AsyncStream<[MediaEvent]> { get }
    /// The monotonic clock; the only one that RoomHost reads.
    func now() -> MonotonicTime
    /// Milliseconds since 1970, for reports.
    func wallClockMilliseconds() -> Int64
}

extension MediaPlane {
    /// A plane without sockets accepts none.
    public func tcpCandidates(of worker: WorkerIndex) -> [SocketAddress] { [] }

    /// A plane without threads has none that hang.
    public func hangs(_ worker: WorkerIndex) -> Bool { false }
}

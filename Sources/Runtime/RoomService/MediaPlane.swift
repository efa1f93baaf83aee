public import MediaControl
public import Primitives

/// Names one media worker.
public struct WorkerIndex: Sendable, Hashable, Comparable {
    public let rawValue: Int

    /// The worker number `rawValue`, from 0.
    public init(_ rawValue: Int) { self.rawValue = rawValue }
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// What RoomService needs of the media workers; the real pool and the fake of tests both speak it.
public protocol MediaPlane: Sendable {
    /// SHA-256 of the certificate that every worker shows.
    var fingerprintSHA256: [UInt8] { get }
    /// Addresses that answers name as candidates of `worker`.
    func candidates(of worker: WorkerIndex) -> [SocketAddress]
    /// The worker with the least to do; nil when none can take more.
    func leastLoadedWorker() async -> WorkerIndex?
    /// Carries the commands out in their order, before anything sent later.
    func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async
    func roomStatistics(_ room: RoomID, on worker: WorkerIndex) async -> RoomStatistics?
    func workerStatistics() async -> [WorkerStatistics]
    /// What happened, from each worker, in order.
    var events: AsyncStream<[MediaEvent]> { get }
    /// The monotonic clock; the only one that RoomService reads.
    func now() -> MonotonicTime
    /// Milliseconds since 1970, for reports.
    func wallClockMilliseconds() -> Int64
}

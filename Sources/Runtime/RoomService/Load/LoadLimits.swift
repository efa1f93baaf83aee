public import Primitives

/// The resources that may limit a server, and for which a join beyond the limit is refused.
public enum LoadResource: String, Sendable, Hashable, CaseIterable {
    /// The time of media workers.
    case cpu
    /// Datagrams to clients.
    case bandwidth
    /// Peer connections.
    case connections
    case participants
    /// Resident memory of the process.
    case memory
    /// Files and sockets that the process has open.
    case openFiles = "open_files"
    /// Datagrams that the kernel dropped because a worker did not read them in time.
    case socketDrops = "socket_drops"
}

/// How far each resource may be used before joins are refused. Nil: no limit.
public struct LoadLimits: Sendable, Hashable {
    /// The share of its time that a media worker may be busy, above 0 and up to 1. The rest is for what current calls do next: cameras that are switched on,
    /// keyframes. Beyond 0.85 queues grow fast: six turns wait on average there, nineteen at 0.95 (M/M/1).
    public var workerBusy: Double? = 0.85
    /// For all workers together, including the headers of IP and UDP.
    public var bandwidthOut: Bitrate?
    public var connections: Int?
    public var participants: Int?
    public var memoryBytes: UInt64?
    public var openFiles: Int?
    /// The share of the arriving datagrams. If the kernel loses one in a hundred, one more participant makes it worse for all.
    public var socketDrops: Double? = 0.01

    /// The defaults: limits of worker time and of drops.
    public init() {}
}

/// A server's usage at one moment.
public struct LoadSample: Sendable, Hashable {
    /// One media worker's totals since its start.
    public struct Worker: Sendable, Hashable {
        public var busyTime = TimeSpan.zero
        public var peers = 0
        /// UDP payload.
        public var bytesSent: UInt64 = 0
        public var datagramsSent: UInt64 = 0
        public var datagramsReceived: UInt64 = 0
        /// Datagrams that arrived, and those that the kernel dropped because the socket's queue was full.
        public var datagramsDropped: UInt64 = 0
        /// Its loop does not respond.
        public var hangs = false

        /// A worker that has done nothing.
        public init() {}
    }

    public var workers: [Worker]
    public var connections = 0
    public var participants = 0
    public var residentBytes: UInt64 = 0
    public var openFiles = 0

    /// A sample of these workers.
    public init(workers: [Worker]) { self.workers = workers }
}

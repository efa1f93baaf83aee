public import MediaEngine
public import NetworkIO
public import Primitives

/// How many workers there are and where they listen.
public struct MediaWorkerConfiguration: Sendable {
    /// Number of workers; 0: one per usable processor.
    public var workers = 0
    /// Worker n listens on this port plus n; 0 lets the system choose each.
    public var udpBasePort: UInt16 = 7_900
    /// The local address; nil for any, of both families.
    public var bindAddress: SocketAddress?
    /// The advertised addresses. A port in one is that of the first worker, and the others count up, as behind a port mapping; an address without a port uses
    /// the ports of the workers. Empty: the bind address, or, if there is none, those of the machine's interfaces.
    public var advertisedAddresses: [SocketAddress] = []
    /// Whether addresses that `discover` finds are advertised, before those of `advertisedAddresses` and instead of the machine's own.
    public var discoversAddresses = false
    /// Which of the machine's addresses are advertised if neither of the above is set.
    public var addressFilter = AddressFilter()
    /// Whether each worker accepts TCP connections on the number of its UDP port (ICE-TCP, RFC 6544), for clients whose network blocks UDP.
    public var acceptsTCP = true
    /// One more TCP port for the clients of all workers, such as 443; nil for none.
    public var sharedTCPPort: UInt16?
    /// The port at which clients reach the shared port, behind a port mapping; nil for its own.
    public var announcedTCPPort: UInt16?
    /// Whether media over UDP is sent with DSCPs: EF for audio, AF41 for video.
    public var marksMedia = false
    /// Maximum TCP connections of each worker: two for each client without UDP, and one for a second or two for each browser that joins.
    public var maximumTCPConnections = 8_192
    /// Binds each worker to one processor. Good on a dedicated machine, bad on a shared one.
    public var pinsThreads = false
    /// Microseconds that a turn may wait for the rest of a frame with several subscribers, so that its packets for each are sent in one system call;
    /// 0 sends every packet as it arrives.
    public var gatherMicroseconds = 1_000
    /// Bytes of each worker's ring to the recorder; 0: nothing can be recorded.
    public var recordRingBytes = 0
    /// The configuration of each worker's engine.
    public var engine = EngineConfiguration()
    /// The engines' source of randomness; nil: the system's. For tests.
    public var seed: UInt64?

    /// One worker per processor on ports from 7900.
    public init() {}
}

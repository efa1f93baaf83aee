public import MediaEngine
public import NetworkIO
public import Primitives

/// How many workers there are and where they listen.
public struct MediaWorkerConfiguration: Sendable {
    /// Number of workers; 0: one a usable processor.
    public var workers = 0
    /// Worker n listens on this port plus n; 0 lets the system choose each.
    public var udpBasePort: UInt16 = 7_900
    /// The local address; nil for any, of both families.
    public var bindAddress: SocketAddress?
    /// The addresses that answers name. One with a port names that of the first worker, the others' follow, as behind a port mapping; one without names
    /// the ports that the workers listen on. Empty: the bind address, else those of the machine's interfaces.
    public var advertisedAddresses: [SocketAddress] = []
    /// Which of the machine's addresses answers name, where neither of the above is given.
    public var addressFilter = AddressFilter()
    /// Binds each worker to one processor. Good on a machine of its own, bad beside others.
    public var pinsThreads = false
    /// Microseconds that a turn may wait for the rest of a picture that several subscribers get, so that its packets leave in one
    /// call of the kernel for each; 0 sends every packet as it comes.
    public var gatherMicroseconds = 1_000
    /// What each worker's engine is told.
    public var engine = EngineConfiguration()
    /// Where engines take their random choices from; nil: the system. For tests.
    public var seed: UInt64?

    /// One worker a processor on ports from 7900.
    public init() {}
}

import CLinux
import Glibc
public import Primitives

/// How a UDP socket is opened.
public struct UDPSocketConfiguration: Sendable, Hashable {
    /// The local address; nil for any, of both families if the machine has IPv6.
    public var address: SocketAddress?
    /// The local port; 0 lets the system choose.
    public var port: UInt16
    /// 8 MiB hold 80 ms of 800 Mbit/s: longer than any turn.
    public var receiveBufferBytes = 8 << 20
    /// 8 MiB: the batches of a turn, until the card has sent them.
    public var sendBufferBytes = 8 << 20
    /// Whether the kernel may join received datagrams (UDP_GRO).
    public var joinsReceived = true
    /// Whether runs of equal datagrams are sent in one piece (UDP_SEGMENT).
    public var segmentsSent = true
    /// Whether media is sent with the DSCPs that RFC 8837 recommends: EF for audio, AF41 for video.
    public var marksMedia = false

    /// A socket on `port` of `address`.
    public init(address: SocketAddress? = nil, port: UInt16) {
        self.address = address
        self.port = port
    }
}

/// Counters of what a socket has transferred, and what it could not.
public struct UDPSocketCounters: Sendable, Hashable {
    /// Datagrams and system calls in.
    public var received: UInt64 = 0, receiveCalls: UInt64 = 0
    /// Datagrams and system calls out.
    public var sent: UInt64 = 0, sendCalls: UInt64 = 0
    /// Datagrams that left as part of a segmented run.
    public var segmented: UInt64 = 0
    /// Datagrams lost because the send buffer stayed full.
    public var sendBufferFull: UInt64 = 0
    /// Datagrams that the kernel refused (no route, a firewall, too large).
    public var sendRefused: UInt64 = 0
    /// Runs that had to be sent one by one because the kernel refused to segment them.
    public var segmentationRefused: UInt64 = 0

    /// All zero.
    public init() {}
}

/// One unconnected, non-blocking UDP socket for both address families.
///
/// Not Sendable: one loop owns it.
public struct UDPSocket: ~Copyable {
    /// For a `Poller`.
    public let descriptor: Int32
    /// The port in use.
    public let port: UInt16
    /// Whether the socket is of the IPv6 family (and carries IPv4 in mapped form); false if IPv6 is disabled.
    public let isIPv6: Bool
    /// What it has carried.
    public internal(set) var counters = UDPSocketCounters()

    /// The largest run that the kernel joins, which is also the largest datagram.
    static let receiveCapacity = 65_536
    /// Runs fetched before the first of them is processed.
    public static let receiveSlots = 16
    /// Not a power of two, or the beginnings of all slots would compete for the same few cache lines.
    static let slotStride = receiveCapacity + 17 * 64
    let runs: UnsafeMutablePointer<ReceivedRun>
    let receiveBuffer: UnsafeMutableRawBufferPointer
    let messages: UnsafeMutablePointer<clinux_message>
    let joinsReceived: Bool
    var segmentsSent: Bool
    let marksMedia: Bool
    /// Whether the kernel may fragment datagrams: only after a path turned out to be narrower than what is sent.
    var mayFragment = false
    /// The error with which the kernel is to refuse a message, 0 for none: for tests of errors that loopback never returns.
    var refusal: ((clinux_message) -> Int32)?

    /// Opens and binds a socket.
    public init(_ configuration: UDPSocketConfiguration) throws(SystemError) {
        try self.init(configuration, besides: nil)
    }

    private init(_ configuration: UDPSocketConfiguration, besides first: Int32?) throws(SystemError) {
        let wantsIPv6 = configuration.address.map { !$0.isIPv4 } ?? true
        var isIPv6 = wantsIPv6
        var descriptor = clinux_udp_socket(isIPv6 ? 1 : 0, configuration.address == nil ? 1 : 0)
        if first != nil { _ = clinux_share_port(descriptor) }
        var bound = descriptor >= 0 ? Self.bind(descriptor, isIPv6, configuration) : -1
        if bound != 0, configuration.address == nil, errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL {
            // IPv6 is disabled: serve only IPv4.
            if descriptor >= 0 { close(descriptor) }
            isIPv6 = false
            descriptor = clinux_udp_socket(0, 0)
            if first != nil { _ = clinux_share_port(descriptor) }
            bound = descriptor >= 0 ? Self.bind(descriptor, isIPv6, configuration) : -1
        }
        let isSplit = bound != 0 || first.map { clinux_split_feedback($0) == 0 } ?? true
        guard bound == 0, isSplit else {
            let error = SystemError(descriptor < 0 ? "socket" : isSplit ? "bind" : "setsockopt")
            if descriptor >= 0 { close(descriptor) }
            throw error
        }
        _ = clinux_set_buffer(descriptor, 0, Int32(configuration.receiveBufferBytes))
        _ = clinux_set_buffer(descriptor, 1, Int32(configuration.sendBufferBytes))
        self.descriptor = descriptor
        self.isIPv6 = isIPv6
        port = UInt16(clinux_bound_port(descriptor))
        joinsReceived = configuration.joinsReceived && clinux_enable_gro(descriptor, 1) == 0
        segmentsSent = configuration.segmentsSent
        marksMedia = configuration.marksMedia
        clinux_set_fragments(descriptor, isIPv6 ? 1 : 0, 0)
        receiveBuffer = .allocate(byteCount: Self.receiveSlots * Self.slotStride, alignment: 64)
        runs = .allocate(capacity: Self.receiveSlots)
        messages = .allocate(capacity: Int(CLINUX_SEND_LIMIT))
    }

    deinit {
        close(descriptor)
        receiveBuffer.deallocate()
        runs.deallocate()
        messages.deallocate()
    }

    /// A second socket on the port of `first`: the kernel gives it transport-wide feedback and leaves everything else to `first`.
    ///
    /// So feedback, which may wait, need not wake the loop that media wakes. A run that the kernel has joined goes to the socket of its first
    /// datagram. Fails if the kernel has no such selection (before Linux 4.5).
    public init(feedbackOf first: borrowing UDPSocket, _ configuration: UDPSocketConfiguration) throws(SystemError) {
        // Only now: another process must not have been able to bind to the port before `first`.
        guard clinux_share_port(first.descriptor) == 0 else { throw SystemError("setsockopt") }
        var own = configuration
        own.port = first.port
        try self.init(own, besides: first.descriptor)
    }

    private static func bind(_ descriptor: Int32, _ isIPv6: Bool, _ configuration: UDPSocketConfiguration) -> Int32 {
        let address = configuration.address ?? SocketAddress(high: 0, low: 0, port: 0)
        return clinux_bind(descriptor, isIPv6 ? 1 : 0, address.high, address.low, configuration.port)
    }

    /// Datagrams that the kernel dropped since the start because the receive buffer was full.
    public var receiveBufferDrops: UInt64 { UInt64(clinux_receive_drops(descriptor)) }
}

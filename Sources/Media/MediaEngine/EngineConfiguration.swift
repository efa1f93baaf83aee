public import MediaControl
public import Primitives

/// The configuration of one worker's engine. Every limit states its reason.
public struct EngineConfiguration: Sendable, Hashable {
    /// A peer whose checks stop for this long is disconnected (RFC 7675 requires at most 30 s).
    public var consentTimeout = TimeSpan.seconds(15)
    /// A peer that has not connected after this long is removed.
    public var setupTimeout = TimeSpan.seconds(30)
    /// Maximum peers per worker; one more is closed at once with `overloaded`. Tables grow as needed, so only memory limits them, and the control plane
    /// counts the peers of all workers together.
    public var maximumPeers = Int.max
    /// STUN checks from unknown addresses processed per second, besides twenty for each peer; a check costs 1.3 us.
    public var unknownSourceChecksPerSecond = 20_000
    /// The only hosts that peers may use, whatever the port; empty: any. A development server lists the addresses of
    /// its own machine.
    public var admittedHosts: [SocketAddress] = []
    /// The largest datagram that the engine writes: an Ethernet frame less IPv6 and UDP headers.
    public var maximumDatagram = 1_452
    /// Whether packets of one turn that differ by a few bytes get RTP padding to equal length, so that they leave in one system
    /// call. Proven by interop tests: Chromium with VP8, VP9 and
    /// H.264, Firefox with VP8 and VP9. Not proven: AV1, and H.264 in Firefox.
    public var levelsSizes = true
    /// Limits of each peer's data channels.
    public var data = DataLimits()

    public init() {}

    /// Whether a peer may come from `source`.
    func admits(_ source: SocketAddress) -> Bool {
        admittedHosts.isEmpty || source.isLoopback
            || admittedHosts.contains { $0.high == source.high && $0.low == source.low }
    }
}

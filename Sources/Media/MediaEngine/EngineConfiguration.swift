public import Primitives

/// What one worker's engine is told at its start. Every bound has its reason beside it.
public struct EngineConfiguration: Sendable, Hashable {
    /// A peer whose checks stop for this long is gone (RFC 7675 asks for at most 30 s).
    public var consentTimeout = TimeInterval.seconds(15)
    /// A peer that has not connected after this long is given up.
    public var setupTimeout = TimeInterval.seconds(30)
    /// Peers a worker serves; one more ends at once with `overloaded`. Tables grow as needed, so that memory alone bounds them, and the control plane
    /// keeps count of it for all workers together.
    public var maximumPeers = Int.max
    /// STUN checks from unknown addresses that are looked at in one second, beside twenty for each peer; a check costs 1.3 us.
    public var strangerChecksPerSecond = 20_000
    /// The only hosts that peers may come from, whatever the port; empty: any. A development server names the addresses of
    /// its own machine.
    public var admittedHosts: [SocketAddress] = []
    /// The largest datagram the engine writes: an Ethernet frame less IPv6 and UDP headers.
    public var maximumDatagram = 1_452
    /// Whether packets of one turn that differ by a few bytes get RTP padding to be of one length, so that they leave in one call of
    /// the kernel. Proven by interop tests: Chromium with VP8, VP9 and
    /// H.264, Firefox with VP8 and VP9. Not proven: AV1, and H.264 in Firefox.
    public var levelsSizes = true

    public init() {}

    /// Whether a peer may come from `source`.
    func admits(_ source: SocketAddress) -> Bool {
        admittedHosts.isEmpty || source.isLoopback
            || admittedHosts.contains { $0.high == source.high && $0.low == source.low }
    }
}

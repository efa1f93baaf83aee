internal import ICE

/// STUN as the engine needs it before it knows the peer.
public enum TransportPeek {
    /// Where in a Binding request the server's own user name fragment lies; nil for anything else. No allocation, no
    /// digest.
    public static func localUfrag(of datagram: borrowing RawSpan) -> Range<Int>? { STUNPeek.localUfrag(of: datagram) }
}

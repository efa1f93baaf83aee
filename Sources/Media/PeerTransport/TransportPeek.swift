internal import ICE

/// STUN parsing that the engine needs before the peer is known.
public enum TransportPeek {
    /// The range of the server's own user name fragment in a Binding request; nil for anything else. No allocation, no
    /// digest.
    public static func localUfrag(of datagram: borrowing RawSpan) -> Range<Int>? { STUNPeek.localUfrag(of: datagram) }
}

public import MediaControl
public import Primitives

/// What became of one datagram.
public enum Received: Sendable, Hashable {
    /// Used up inside: STUN or DTLS.
    case nothing
    case dropped(DropReason)
    /// A clear RTP packet lies in the first `length` bytes of the datagram.
    case rtp(length: Int)
    /// A clear RTCP compound lies in the first `length` bytes of the datagram.
    case rtcp(length: Int)
}

/// What a transport tells its engine, in order.
public enum TransportEvent: Sendable, Hashable {
    /// An authentic check came from this address: datagrams from it are this peer's, unless they are another's.
    case addressValidated(SocketAddress)
    /// The address has answered the server's own check: whoever else had it is not there any more.
    case addressConsented(SocketAddress)
    /// The address is no longer this peer's.
    case addressReleased(SocketAddress)
    /// ICE and DTLS are up and keys are installed.
    case connected
    /// Media may be sent from now on: there are keys, and the peer's address has answered the server's check.
    case sendingAllowed
    /// The address has stopped answering: no media may be sent until it answers again.
    case sendingForbidden
    /// The selected address changed after `connected` (NAT rebinding, network switch). While a peer settles on one of
    /// its candidates nothing is told.
    case moved(SocketAddress)
    /// Checks with the new local credentials have arrived: the old user name fragment is no longer this peer's.
    case ufragReleased(String)
    /// Nothing more will come; the engine forgets the peer with its addresses and ufrags. Told once.
    case ended(PeerEndReason)
}

public import MediaControl
public import Primitives

/// The outcome of one datagram.
public enum Received: Sendable, Hashable {
    /// Processed internally: STUN or DTLS.
    case nothing
    case dropped(DropReason)
    /// A decrypted RTP packet is in the first `length` bytes of the datagram.
    case rtp(length: Int)
    /// A decrypted RTCP compound is in the first `length` bytes of the datagram.
    case rtcp(length: Int)
}

/// Events of a transport for its engine, in order.
public enum TransportEvent: Sendable, Hashable {
    /// An authentic check arrived from this address: datagrams from it belong to this peer, unless the address belongs to another.
    case addressValidated(SocketAddress)
    /// The address has answered the server's own check: it no longer belongs to any other peer.
    case addressConsented(SocketAddress)
    /// The address no longer belongs to this peer.
    case addressReleased(SocketAddress)
    /// ICE and DTLS are up and keys are installed.
    case connected
    /// Media may be sent from now on: there are keys, and the peer's address has answered the server's check.
    case sendingAllowed
    /// The address has stopped answering: no media may be sent until it answers again.
    case sendingForbidden
    /// The selected address changed after `connected` (NAT rebinding, network switch). Not reported while a peer settles on one of
    /// its candidates.
    case moved(SocketAddress)
    /// Checks with the new local credentials have arrived: the old user name fragment no longer belongs to this peer.
    case ufragReleased(String)
    /// A data channel may be used.
    case dataChannelOpened(DataChannelTerms)
    /// The data channel with this label is closed.
    case dataChannelClosed(label: String, DataChannelEnd)
    /// A message arrived on the data channel with this label.
    case dataReceived(label: String, DataPayload)
    /// The last event; the engine removes the peer with its addresses and ufrags. Reported once.
    case ended(PeerEndReason)
}

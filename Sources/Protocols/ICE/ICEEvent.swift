public import Primitives

/// What a lite agent reports to its owner, in order.
public enum ICEEvent: Sendable, Hashable {
    /// A check from this address was answered with success for the first time: packets from it are accepted.
    case validated(SocketAddress)
    /// This address has answered the server's own check, for the first time or after its consent had expired.
    case consented(SocketAddress)
    /// The address has been silent too long, or was evicted.
    case released(SocketAddress)
    /// The peer has nominated this address, or sends from it now; it has not answered the server's check yet.
    case nominated(SocketAddress)
    /// Datagrams go to this address from now on. `isMove`: the peer was established at another one, and its network changed.
    case selected(SocketAddress, isMove: Bool)
    /// A check with the new local credentials arrived; the old user name fragment is free.
    case credentialsReplaced(oldUfrag: [UInt8])
    /// No address was nominated in time.
    case setupTimedOut
    /// Nothing authentic arrived within the consent timeout (RFC 7675).
    case consentExpired
}

/// Limits of a lite agent.
public struct ICESettings: Sendable, Hashable {
    /// How long a response to the server's check is valid, and how long a peer may be silent.
    public var consentTimeout = TimeSpan.seconds(15)
    /// How long the peer may take to nominate an address.
    public var setupTimeout = TimeSpan.seconds(30)

    public init() {}

    /// RFC 7675 section 5.1 asks for 5 s; a short consent timeout still gets three checks.
    var checkInterval: TimeSpan { min(.seconds(5), consentTimeout / 3) }
}

/// Which side sends on an m-section, as seen by the side that wrote it (RFC 8866 section 6.7).
public enum Direction: String, Sendable, Hashable, CaseIterable {
    case sendrecv, sendonly, recvonly, inactive

    /// The direction of a side, by whether it sends and whether it receives.
    public init(sends: Bool, receives: Bool) {
        self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
    }

    /// Whether the writing side sends.
    public var sends: Bool { self == .sendrecv || self == .sendonly }
    /// Whether the writing side receives.
    public var receives: Bool { self == .sendrecv || self == .recvonly }
    /// The same from the other side's point of view.
    public var reversed: Self { Self(sends: receives, receives: sends) }
}

/// `a=setup` (RFC 4145 section 4, RFC 8842): which side starts the DTLS handshake.
public enum SetupRole: String, Sendable, Hashable {
    /// The writing side sends the ClientHello.
    case active
    /// The writing side waits for the ClientHello.
    case passive
    /// Offers only: either; the answer decides.
    case actpass
    case holdconn
}

/// What an m-section carries.
public enum SectionKind: String, Sendable, Hashable, CaseIterable {
    case audio, video
    /// The SCTP association of data channels.
    case application
}

public import Primitives

/// What a completed handshake exports for SRTP (RFC 5764 section 4.2).
public struct DTLSKeys: Sendable, Hashable {
    /// The agreed SRTP profile by its registered number.
    public let profile: UInt16
    /// Master key followed by master salt for what this side sends.
    public let local: [UInt8]
    /// Master key followed by master salt for what the other side sends.
    public let remote: [UInt8]

    /// Lengths of key and salt by profile; nil for one that is not offered.
    static func lengths(of profile: UInt16) -> (key: Int, salt: Int)? {
        switch profile {
        case 0x0001: (16, 14)
        case 0x0007: (16, 12)
        case 0x0008: (32, 12)
        default: nil
        }
    }

    /// Exported material is: client key, server key, client salt, server salt.
    init(profile: UInt16, material: [UInt8], key: Int, salt: Int, isClient: Bool) {
        let client = Array(material[..<key]) + Array(material[(2 * key)..<(2 * key + salt)])
        let server = Array(material[key..<(2 * key)]) + Array(material[(2 * key + salt)..<(2 * key + 2 * salt)])
        self.profile = profile
        local = isClient ? client : server
        remote = isClient ? server : client
    }
}

/// Why an association ended.
public enum DTLSEnd: Sendable, Hashable {
    /// The peer's certificate does not match the fingerprint in its SDP.
    case fingerprintMismatch
    /// No common version, cipher or SRTP profile, or a faulty peer.
    case handshakeFailed(HandshakeFailure)
    /// The handshake did not complete in time.
    case timedOut
    /// close_notify was received.
    case closedByPeer
    /// This side closed it.
    case closed
}

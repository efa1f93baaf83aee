/// Why a DTLS handshake failed other than by taking too long: one of a few words of the server, whatever the peer sends.
public enum HandshakeFailure: UInt8, Sendable, CaseIterable {
    /// No version that both sides have; the server takes DTLS 1.2.
    case noCommonVersion
    /// No cipher that both sides have.
    case noCommonCipher
    /// No SRTP profile that both sides have.
    case noCommonSRTPProfile
    /// The peer ended it with an alert.
    case refusedByPeer
    /// Any other: a faulty message, or a library that fails.
    case other
}

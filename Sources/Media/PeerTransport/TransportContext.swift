public import Cryptography
public import Primitives

/// Limits and choices that hold for all peers of a worker.
public struct TransportSettings: Sendable, Hashable {
    /// A peer without a valid check for so long is gone (RFC 7675 section 5.1 allows 30 s at most; F4, B18).
    public var consentTimeout = TimeInterval.seconds(15)
    /// A peer that has not finished ICE for so long after its description was set is given up.
    public var setupTimeout = TimeInterval.seconds(30)
    /// A DTLS handshake that has not ended for so long after the first validated tuple is given up.
    public var handshakeTimeout = TimeInterval.seconds(30)
    /// The largest DTLS datagram sent.
    public var maximumDatagram = 1_200

    public init() {}
}

/// What all peers of one worker share: certificate, OpenSSL context, STUN agent, settings. One per worker; not Sendable.
public final class TransportContext {
    /// The certificate shown to peers.
    public let certificate: Certificate
    /// Limits and choices.
    public let settings: TransportSettings

    /// Loads the certificate; `seed` decides consent jitter and transaction ids (in production it comes from SecureRandom).
    public init(certificate: Certificate, settings: TransportSettings = .init(), seed: UInt64) throws(CryptographyError) {
        self.certificate = certificate
        self.settings = settings
    }
}

/// What went wrong in OpenSSL, by the call that failed.
public enum CryptographyError: Error, Sendable, Hashable {
    /// OpenSSL refused `call`.
    case failed(call: String)
}

/// A certificate with its private key as plain bytes (DER), so that every worker can load its own copy.
///
/// Made at each start and never written to disk: peers learn its fingerprint from the SDP (RFC 8122), so nothing depends on its signer.
public struct Certificate: Sendable, Hashable {
    /// The X.509 certificate in DER.
    public let der: [UInt8]
    /// The private key in DER (RFC 5915 for elliptic curves, RFC 8017 for RSA).
    public let privateKeyDER: [UInt8]
    /// The kind of its key.
    public let keyKind: KeyKind
    /// SHA-256 over `der`.
    public let fingerprintSHA256: [UInt8]

    /// The kinds of keys that DTLS peers use.
    public enum KeyKind: Sendable, Hashable {
        /// ECDSA on P-256: what browsers use and what the server uses.
        case p256
        /// RSA with 2048 bits, as older and embedded peers use; here for tests against such peers.
        case rsa2048
    }

    init(der: [UInt8], privateKeyDER: [UInt8], keyKind: KeyKind) {
        self.der = der
        self.privateKeyDER = privateKeyDER
        self.keyKind = keyKind
        self.fingerprintSHA256 = Digest.sha256(der)
    }
}

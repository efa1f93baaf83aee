internal import COpenSSL

/// Why files cannot be used as a TLS server's certificate and key.
public enum ServerCertificateError: Error, Sendable, Hashable {
    /// There is no PEM block with a certificate.
    case noCertificate
    /// A certificate is not X.509.
    case damagedCertificate
    /// There is no PEM block with a private key.
    case noKey
    /// The PEM block with the private key does not contain a key.
    case damagedKey
    /// The key is encrypted with a passphrase, and the server cannot ask for it.
    case encryptedKey
    /// The first certificate belongs to another key.
    case mismatch
}

/// A TLS server's certificate chain and private key in PEM form (RFC 7468), known to match.
public struct ServerCertificate: Sendable, Hashable {
    /// Whether a certificate is within its validity period.
    public enum Validity: Sendable, Hashable {
        case notYetValid, valid, expired
    }

    /// Seconds since 1970.
    private let notBefore: Int64, notAfter: Int64

    /// Reads the server's certificate and its intermediates from `chain`, the key from `key`.
    public init(chain: [UInt8], key: [UInt8]) throws(ServerCertificateError) {
        let first = try Self.readChain(chain)
        defer { X509_free(first) }
        let key = try Self.readKey(key)
        defer { EVP_PKEY_free(key) }
        let matches = X509_check_private_key(first, key) == 1
        ERR_clear_error()
        guard matches else { throw .mismatch }
        notBefore = Self.seconds(X509_get0_notBefore(first))
        notAfter = Self.seconds(X509_get0_notAfter(first))
    }

    /// Whether the server's own certificate is within its validity period at `now`, in seconds since 1970.
    public func validity(at now: Int64) -> Validity {
        now < notBefore ? .notYetValid : now > notAfter ? .expired : .valid
    }

    /// The first certificate of a chain whose other certificates are readable, too. The caller owns it.
    private static func readChain(_ pem: [UInt8]) throws(ServerCertificateError) -> OpaquePointer {
        guard let source = memory(pem) else { throw .noCertificate }
        defer { BIO_free(source) }
        var first: OpaquePointer?
        while let certificate = PEM_read_bio_X509(source, nil, nil, nil) {
            if first == nil { first = certificate } else { X509_free(certificate) }
        }
        let isAtEnd = lastReason() == PEM_R_NO_START_LINE
        guard isAtEnd, let first else {
            X509_free(first)
            throw isAtEnd ? .noCertificate : .damagedCertificate
        }
        return first
    }

    /// The first private key. The caller owns it.
    private static func readKey(_ pem: [UInt8]) throws(ServerCertificateError) -> OpaquePointer {
        guard let source = memory(pem) else { throw .noKey }
        defer { BIO_free(source) }
        var isEncrypted = false
        // Without a callback OpenSSL asks at the terminal.
        let key = withUnsafeMutablePointer(to: &isEncrypted) { asked in
            PEM_read_bio_PrivateKey(
                source, nil,
                { _, _, _, asked in
                    asked?.assumingMemoryBound(to: Bool.self).pointee = true
                    return -1
                }, asked)
        }
        ERR_clear_error()
        if let key { return key }
        // OpenSSL does not define which of its decoders fails last, nor with which reason.
        let hasBlock = String(decoding: pem, as: UTF8.self).contains("PRIVATE KEY-----")
        throw isEncrypted ? .encryptedKey : hasBlock ? .damagedKey : .noKey
    }

    private static func memory(_ bytes: [UInt8]) -> OpaquePointer? {
        guard !bytes.isEmpty, let source = BIO_new(BIO_s_mem()) else { return nil }
        BIO_write(source, bytes, Int32(clamping: bytes.count))
        return source
    }

    /// The reason of OpenSSL's last error, which is cleared.
    private static func lastReason() -> Int32 {
        defer { ERR_clear_error() }
        return ERR_GET_REASON(ERR_peek_last_error())
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var days: Int32 = 0
        var rest: Int32 = 0
        guard let epoch = ASN1_TIME_set(nil, 0) else { return 0 }
        defer { ASN1_TIME_free(epoch) }
        guard ASN1_TIME_diff(&days, &rest, epoch, time) == 1 else { return 0 }
        return Int64(days) * 86_400 + Int64(rest)
    }
}

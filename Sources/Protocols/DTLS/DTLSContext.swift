internal import COpenSSL
public import Cryptography

/// OpenSSL's settings for all DTLS associations of a worker: certificate, versions, ciphers, SRTP profiles.
///
/// Not Sendable: one for each worker.
public final class DTLSContext {
    let context: OpaquePointer
    let method: DatagramMethod
    let mtu: Int
    let keepsLibrary: Bool
    let cipher: RecordCipher
    /// The application data that an association found in the last datagram received: to be read and emptied after each `receive`.
    public var applicationData = ApplicationData()

    /// SRTP profiles in order of preference (RFC 5764, 7714). The DTLS server's order decides.
    public static let defaultProfiles =
        "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_256_GCM"

    /// ECDHE with AEAD first, CBC for old peers, each with ECDSA and RSA certificates (RFC 8827 section 6.5 requires ECDHE-ECDSA-AES128-GCM; peers
    /// with RSA certificates exist).
    static let ciphers = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
    ].joined(separator: ":")

    /// The longest handshake message accepted, as far as OpenSSL allows a limit: it always accepts one record's length.
    static let maximumHandshakeMessage = 16_384

    /// Loads the certificate; `profiles` is for tests of peers with fewer, `keepsLibrary` for tests in which OpenSSL handles the association to its
    /// end.
    public init(
        certificate: Certificate, maximumDatagram: Int, profiles: String = DTLSContext.defaultProfiles,
        keepsLibrary: Bool = false
    ) throws(CryptographyError) {
        guard let method = DatagramMethod() else { throw .failed(call: "BIO_meth_new") }
        guard let cipher = RecordCipher() else { throw .failed(call: "EVP_CIPHER_CTX_new") }
        guard let context = SSL_CTX_new(DTLS_method()) else { throw .failed(call: "SSL_CTX_new") }
        self.method = method
        self.cipher = cipher
        self.context = context
        mtu = maximumDatagram
        self.keepsLibrary = keepsLibrary
        try Self.load(certificate, into: context)
        try Self.configure(context, profiles)
        SSL_CTX_set_cert_verify_callback(context, { store, _ in DTLSAssociation.verifyPeer(store) }, nil)
    }

    deinit { SSL_CTX_free(context) }

    private static func load(_ certificate: Certificate, into context: OpaquePointer) throws(CryptographyError) {
        let kind = certificate.keyKind == .p256 ? EVP_PKEY_EC : EVP_PKEY_RSA
        guard SSL_CTX_use_certificate_ASN1(context, Int32(certificate.der.count), certificate.der) == 1 else {
            throw .failed(call: "SSL_CTX_use_certificate_ASN1")
        }
        let key = certificate.privateKeyDER
        guard SSL_CTX_use_PrivateKey_ASN1(kind, context, key, key.count) == 1, SSL_CTX_check_private_key(context) == 1
        else { throw .failed(call: "SSL_CTX_use_PrivateKey_ASN1") }
    }

    private static func configure(_ context: OpaquePointer, _ profiles: String) throws(CryptographyError) {
        // DTLS 1.0 is refused (RFC 8827 section 6.5); OpenSSL 3.0 has no 1.3.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(DTLS1_2_VERSION), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(DTLS1_2_VERSION), nil)
        SSL_CTX_set_options(context, COPENSSL_DTLS_OPTIONS)
        // Every association is made once and authenticated by the SDP's fingerprint: there is no session to resume.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        // A handshake message is assembled in memory of the size that its first fragment claims, up to ten messages ahead. A flight's certificate has
        // 300 to 1,500 bytes; OpenSSL's own limit is 100 kB.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_CERT_LIST, Self.maximumHandshakeMessage, nil)
        // Idle associations keep no record buffers: two of 16 kB per peer.
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        guard SSL_CTX_set_cipher_list(context, ciphers) == 1 else { throw .failed(call: "SSL_CTX_set_cipher_list") }
        var groups = Array("X25519:P-256:P-384".utf8CString)
        let grouped = groups.withUnsafeMutableBytes {
            SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, $0.baseAddress)
        }
        guard grouped == 1 else { throw .failed(call: "SSL_CTX_set1_groups_list") }
        // Returns 0 for success, unlike similar calls.
        guard SSL_CTX_set_tlsext_use_srtp(context, profiles) == 0 else {
            throw .failed(call: "SSL_CTX_set_tlsext_use_srtp")
        }
    }
}

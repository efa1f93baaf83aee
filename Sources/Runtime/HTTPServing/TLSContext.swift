import COpenSSL
import Glibc
import NetworkIO

/// OpenSSL's settings for the connections of one listener: certificate, key, versions. Belongs to the loop's thread.
final class TLSContext {
    private let context: OpaquePointer

    /// Loads certificate chain and key.
    init(_ files: TLSFiles) throws(HTTPServerError) {
        // OpenSSL writes to sockets without a flag that would return an error instead of raising the signal.
        signal(SIGPIPE, SIG_IGN)
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw .invalidCertificate(Self.reason()) }
        self.context = context
        // RFC 9325: 1.2 and 1.3, without renegotiation and compression; for 1.2 the ciphers of its section 4.2 and similar ones.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        SSL_CTX_set_options(context, COPENSSL_TLS_OPTIONS)
        SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20")
        // Sessions are resumed by tickets, which clients keep; 20,000 sessions kept here would occupy memory that attackers could fill.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        // A waiting connection keeps no record buffers: two of 17 kB each. A partial write continues where it stopped.
        let modes = SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(modes), nil)
        // Records without application data (key updates, alerts) end a read, so that a client cannot keep the loop in one.
        SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, Int(SSL_MODE_AUTO_RETRY), nil)
        guard SSL_CTX_use_certificate_chain_file(context, files.certificatePath) == 1,
            SSL_CTX_use_PrivateKey_file(context, files.keyPath, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_check_private_key(context) == 1
        else { throw .invalidCertificate(Self.reason()) }
        // RFC 7301 section 3.2: selects HTTP/1.1 from the protocols that a client offers; a client that does not offer it would use another.
        SSL_CTX_set_alpn_select_cb(context, selectHTTP, nil)
    }

    deinit { SSL_CTX_free(context) }

    /// When the certificate expires, in seconds since 1970; nil if its date cannot be read.
    var expiresAt: Int64? {
        var end = tm()
        guard let certificate = SSL_CTX_get0_certificate(context), let time = X509_get0_notAfter(certificate),
            ASN1_TIME_to_tm(time, &end) == 1
        else { return nil }
        return Int64(timegm(&end))
    }

    /// The server's side of TLS on an accepted socket; nil if memory runs out.
    func session(on socket: TCPSocket) -> TLSSession? {
        guard let ssl = SSL_new(context) else { return nil }
        guard SSL_set_fd(ssl, socket.descriptor) == 1 else {
            SSL_free(ssl)
            return nil
        }
        SSL_set_accept_state(ssl)
        return TLSSession(ssl)
    }

    private static func reason() -> String {
        guard let words = ERR_reason_error_string(ERR_get_error()) else { return "unknown TLS error" }
        return String(cString: words)
    }
}

private func selectHTTP(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let chosen, let chosenLength, let offered else { return SSL_TLSEXT_ERR_NOACK }
    // Entries are a length and that many bytes (RFC 7301 section 3.1); OpenSSL has checked that they fit.
    let name = Array("http/1.1".utf8)
    var index = 0
    while index < Int(offeredLength) {
        let length = Int(offered[index])
        let entry = UnsafeBufferPointer(start: offered + index + 1, count: length)
        if index + 1 + length <= Int(offeredLength), entry.elementsEqual(name) {
            chosen.pointee = offered + index + 1
            chosenLength.pointee = UInt8(length)
            return SSL_TLSEXT_ERR_OK
        }
        index += 1 + length
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// TLS on one connection.
final class TLSSession {
    private let ssl: OpaquePointer
    private var isBroken = false
    /// The direction for which the last call waits besides its own: a handshake reads to write and writes to read.
    private(set) var needsWritable = false

    fileprivate init(_ ssl: OpaquePointer) { self.ssl = ssl }

    deinit { SSL_free(ssl) }

    /// Whether the handshake is in progress.
    var isInHandshake: Bool { SSL_is_init_finished(ssl) == 0 }

    /// Whether decrypted bytes are buffered, which the socket does not show.
    var hasPending: Bool { SSL_pending(ssl) > 0 }

    func read(into bytes: UnsafeMutableRawBufferPointer) -> TCPSocket.Outcome {
        perform { SSL_read_ex(ssl, bytes.baseAddress, bytes.count, $0) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> TCPSocket.Outcome {
        perform { SSL_write_ex(ssl, bytes.baseAddress, bytes.count, $0) }
    }

    /// Signals that nothing more will come; if that does not fit, the end of the connection signals it.
    func finishWriting() {
        guard !isBroken, !isInHandshake else { return }
        ERR_clear_error()
        SSL_shutdown(ssl)
    }

    private func perform(_ call: (UnsafeMutablePointer<Int>) -> Int32) -> TCPSocket.Outcome {
        guard !isBroken else { return .ended }
        ERR_clear_error()
        var count = 0
        let result = call(&count)
        needsWritable = false
        if result > 0 { return .bytes(count) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .blocked
        case SSL_ERROR_WANT_WRITE:
            needsWritable = true
            return .blocked
        default:
            isBroken = true
            return .ended
        }
    }
}

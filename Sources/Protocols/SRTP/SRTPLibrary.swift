internal import CSRTP

/// libsrtp2 as this process uses it: its kernel with OpenSSL's ciphers installed.
public enum SRTPLibrary {
    /// Possible faults at start. None may be ignored: the process must not serve media.
    public enum StartError: Error, Sendable, Hashable {
        /// libsrtp2 itself did not start.
        case initialisation(status: UInt32)
        /// A replacement cipher or digest did not pass libsrtp2's own self tests.
        case replacement(name: String, status: UInt32)
        /// A known-answer test failed (RFC 3711 appendix B, RFC 7714 section 16).
        case knownAnswer(name: String)
    }

    /// Starts libsrtp2, installs OpenSSL's ciphers and runs known-answer tests. Later calls return the first result.
    ///
    /// libsrtp2's kernel is one per process and must not change under a session, so this happens once, before any
    /// session.
    public static func start() throws(StartError) {
        if let error = outcome { throw error }
    }

    private static let outcome: StartError? = {
        let status = srtp_init()
        guard status == srtp_err_status_ok else { return .initialisation(status: status.rawValue) }
        var reason = srtp_err_status_ok
        let failed = csrtp_install_openssl(&reason)
        guard failed == CSRTP_OK else { return .replacement(name: name(of: failed), status: reason.rawValue) }
        return KnownAnswers.check()
    }()

    /// The implementation of AES-128 GCM: the fastest available that matches OpenSSL.
    nonisolated(unsafe) static let kernel: UnsafePointer<csrtp_gcm_kernel> = {
        let sure: UnsafePointer<csrtp_gcm_kernel> = csrtp_gcm_openssl()
        guard let fast = csrtp_gcm_ipsec_mb(), KnownAnswers.agree(fast, sure) else { return sure }
        return fast
    }()

    private static func name(of kernel: csrtp_kernel) -> String {
        switch kernel {
        case CSRTP_AES_ICM_128: "AES-128 counter mode"
        case CSRTP_AES_ICM_256: "AES-256 counter mode"
        case CSRTP_AES_GCM_128: "AES-128 GCM"
        case CSRTP_AES_GCM_256: "AES-256 GCM"
        default: "HMAC-SHA1"
        }
    }

    /// Which implementation serves the other profiles, in libsrtp2; for the log line at start.
    public static var cipherDescription: String { String(cString: csrtp_gcm_description()) }

    /// Which implementation serves AES-128 GCM, which nearly all peers use; for the log line at start.
    public static var senderDescription: String { String(cString: kernel.pointee.name) }
}

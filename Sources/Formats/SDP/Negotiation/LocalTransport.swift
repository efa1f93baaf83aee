/// The server's end of one ICE and DTLS association, as in its descriptions.
public struct LocalTransport: Sendable, Hashable {
    public var iceUfrag: String
    public var icePassword: String
    /// SHA-256 of the certificate; 32 bytes.
    public var fingerprintSHA256: [UInt8]
    /// Every address at which the server can be reached; the first UDP one is also in the m= and c= lines. ICE-lite has no later candidates, so descriptions
    /// end with end-of-candidates.
    public var candidates: [Candidate]

    /// All of it.
    public init(iceUfrag: String, icePassword: String, fingerprintSHA256: [UInt8], candidates: [Candidate]) {
        self.iceUfrag = iceUfrag
        self.icePassword = icePassword
        self.fingerprintSHA256 = fingerprintSHA256
        self.candidates = candidates
    }
}

/// The remote end according to its description. All bundled sections share one transport.
public struct TransportFacts: Sendable, Hashable {
    public var iceUfrag: String
    public var icePassword: String
    /// SHA-256 of the certificate that the peer must show; 32 bytes.
    public var fingerprintSHA256: [UInt8]
    /// The server's own role: `.passive` waits for the ClientHello, `.active` sends it.
    public var localSetup: SetupRole
    /// Candidates in the description; malformed ones are left out.
    public var candidates: [Candidate]
    /// Whether the remote signalled the end of candidates.
    public var endOfCandidates: Bool
    /// Whether the remote understands trickled candidates.
    public var supportsTrickle: Bool
}

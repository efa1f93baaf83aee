/// How packets are protected, as negotiated by DTLS (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
public enum SRTPProfile: UInt16, Sendable, Hashable, CaseIterable {
    /// AES in counter mode with HMAC-SHA1 truncated to 80 bits: the profile that every client has.
    case aes128CM80 = 0x0001
    /// AES-128 in Galois counter mode.
    case aeadAES128GCM = 0x0007
    /// AES-256 in Galois counter mode.
    case aeadAES256GCM = 0x0008

    /// Bytes of a master key.
    public var keyLength: Int { self == .aeadAES256GCM ? 32 : 16 }
    /// Bytes of a master salt.
    public var saltLength: Int { self == .aes128CM80 ? 14 : 12 }
    /// The registered name.
    public var name: String {
        switch self {
        case .aes128CM80: "SRTP_AES128_CM_HMAC_SHA1_80"
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        }
    }
    /// Bytes that protection adds to an RTP packet.
    public var tagLength: Int { self == .aes128CM80 ? 10 : 16 }
    /// Whether a packet may be sent again under its sequence number with any change in it.
    ///
    /// Never under GCM: two different packets under one nonce reveal the authentication key (RFC 7714 section 8.4), and a changed header extension is
    /// enough. There, lost packets are repaired by RTX (RFC 4588), or sent again byte for byte (`SRTPSender`).
    public var allowsRepeatedSequenceNumbers: Bool { self == .aes128CM80 }
}

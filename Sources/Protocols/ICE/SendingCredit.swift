/// How many bytes may be sent to an address without consent, so that nobody can use the server to flood another host.
///
/// Three times the bytes that arrived from the address itself, as QUIC allows before address validation (RFC 9000 section 8.1). That covers the response to a
/// check, the server's own check, a DTLS flight for a ClientHello, and reports to a client that only sends.
struct SendingCredit {
    private static let factor = 3
    /// The most that one turn may write to one peer: a larger credit would serve only an attacker.
    private static let most = 16_384

    /// The additional bytes of each peer for DTLS and reports, once, for all its addresses together: four ClientHellos of 300 bytes, for a client that
    /// lets the server start the handshake and misses the first ones (ffmpeg waits a second before it receives).
    static let allowance = 1_200

    private var bytes = 0

    mutating func received(_ count: Int) { bytes = min(bytes + count * Self.factor, Self.most) }

    /// Uses up `count` bytes, as far as needed from the peer's `allowance`; false, and nothing is used, if both together have less.
    mutating func spend(_ count: Int, allowance: inout Int) -> Bool {
        guard count <= bytes + allowance else { return false }
        let own = min(count, bytes)
        bytes -= own
        allowance -= count - own
        return true
    }
}

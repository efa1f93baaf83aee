/// How many bytes an address without consent may be sent, so that nobody can aim the server at somebody else.
///
/// Three times what came from the address itself, as QUIC allows before it has validated one (RFC 9000 section 8.1). That covers the
/// answer to a check, the server's own check, a DTLS flight for a ClientHello, and reports to a client that only sends.
struct SendingCredit {
    private static let factor = 3
    /// What one turn may write at most to one peer: more saved up serves nobody but an attacker.
    private static let most = 16_384

    /// What each peer has beside for DTLS and reports, once, whatever its addresses: four ClientHellos of 300 bytes, for a client that lets the server begin
    /// the handshake and does not hear the first ones (ffmpeg waits a second before it listens).
    static let allowance = 1_200

    private var bytes = 0

    mutating func received(_ count: Int) { bytes = min(bytes + count * Self.factor, Self.most) }

    /// Takes `count` bytes, as far as needed from the peer's `allowance`; false, and nothing is taken, where both have less.
    mutating func spend(_ count: Int, allowance: inout Int) -> Bool {
        guard count <= bytes + allowance else { return false }
        let own = min(count, bytes)
        bytes -= own
        allowance -= count - own
        return true
    }
}

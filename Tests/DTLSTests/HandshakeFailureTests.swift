import Primitives
import Testing

@testable import DTLS

@Suite("Causes of failed handshakes")
struct HandshakeFailureTests {
    @Test(
        "The peer has refused a handshake where it has sent an alert, and not where OpenSSL itself fails",
        arguments: [
            (258, .noCommonVersion), (193, .noCommonCipher), (1_000, .refusedByPeer), (1_255, .refusedByPeer),
            (999, .other), (1_256, .other), (0, .other),
            // ERR_R_INTERNAL_ERROR, and ERR_R_EC_LIB, which a faulty key of the peer's ends in.
            (259 | 3 << 18, .other), (16 | 2 << 18, .other),
        ] as [(Int32, HandshakeFailure)])
    func cause(reason: Int32, expected: HandshakeFailure) {
        #expect(DTLSAssociation.failure(reason) == expected)
    }
}

import ICE
import Primitives
import TestSupport
import Testing

/// RFC 5769: test vectors for STUN.
@Suite("STUN vectors of RFC 5769")
struct STUNVectorTests {
    /// Section 2.1, a Binding request with USERNAME "evtj:h6vY".
    static let request = bytes(
        hex: """
            00010058 2112a442 b7e7a701 bc34d686 fa87dfae 80220010 5354554e 20746573 7420636c 69656e74 00240004 6e0001ff
            80290008 932ff9b1 51263b36 00060009 6576746a 3a683676 59202020 00080014 9aeaa70c bfd8cb56 781ef2b5 b2d3f249
            c1b571a2 80280004 e57a3bcf
            """)
    /// Section 2.2, the response over IPv4 (192.0.2.1 port 32853).
    static let response4 = bytes(
        hex: """
            0101003c 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200008 0001a147 e112a643
            00080014 2b91f599 fd9e90c3 8c7489f9 2af9ba53 f06be7d7 80280004 c07d4c96
            """)
    /// Section 2.3, the response over IPv6.
    static let response6 = bytes(
        hex: """
            01010048 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200014 0002a147 0113a9fa
            a5d3f179 bc25f4b5 bed2b9d9 00080014 a382954e 4be67bf1 1784c97c 8292c275 bfe3ed41 80280004 c8fb0b4c
            """)
    static let password = "VOkJxbRl1RmTxUk/WvJxBt"

    private let stun = STUNAgent(tieBreaker: 1)
    private let source = SocketAddress(ipv4: 0xc000_0201, port: 32_853)

    @Test("The user name of the request is found without computing digests")
    func peek() {
        #expect(Self.request.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) } == 64..<68)
        #expect(Self.response4.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) } == nil)
        #expect(Self.response4.withUnsafeBytes { STUNPeek.isSTUN($0.bytes) })
    }

    @Test("The request is authentic under its password only; as a controlled agent's it causes a role conflict")
    func request() {
        var output = OutboundBatch(datagrams: 4, bytes: 8_192)
        let right = ICECredential(ufrag: "evtj", password: Self.password)
        let wrong = ICECredential(ufrag: "evtj", password: Self.password + "x")
        #expect(answer(Self.request, right, &output) == .refused)
        #expect(answer(Self.request, wrong, &output) == .dropped(.stunUnauthorized))
        // Error response, 487 in ERROR-CODE (RFC 8489 section 14.8: class 4, number 87).
        let reply = Array(output.arena[0..<output.entries[0].length])
        #expect(reply[0] == 0x01 && reply[1] == 0x11)
        #expect(Array(reply[8..<20]) == Array(Self.request[8..<20]), "the transaction is echoed")
        #expect(Array(reply[20..<28]) == [0, 9, 0, reply[23], 0, 0, 4, 87])
    }

    @Test("A flipped bit anywhere makes the request malformed or unauthentic", arguments: 0..<108)
    func flipped(index: Int) {
        var output = OutboundBatch(datagrams: 4, bytes: 8_192)
        var damaged = Self.request
        damaged[index] ^= 0x10
        let right = ICECredential(ufrag: "evtj", password: Self.password)
        guard case .dropped = answer(damaged, right, &output) else {
            Issue.record("byte \(index) may be changed")
            return
        }
    }

    @Test("The responses are authentic under the password only", arguments: [response4, response6])
    func response(message: [UInt8]) {
        let right = ICECredential(ufrag: "evtj", password: Self.password)
        let wrong = ICECredential(ufrag: "evtj", password: "VOkJxbRl1RmTxUk/WvJxBu")
        #expect(message.withUnsafeBytes { stun.isAuthenticResponse($0, remote: right) })
        #expect(!message.withUnsafeBytes { stun.isAuthenticResponse($0, remote: wrong) })
        #expect(message.withUnsafeBytes { stun.isAuthenticResponse($0, remote: right) }, "no state is left behind")
    }

    private func answer(_ request: [UInt8], _ local: ICECredential, _ output: inout OutboundBatch) -> CheckOutcome {
        var outcome = CheckOutcome.dropped(.stunMalformed)
        request.withUnsafeBytes { outcome = stun.answer($0, local: local, from: source, into: &output) }
        return outcome
    }
}

import CSRTP
import CSRTPLibrary
import SRTP
import TestSupport
import Testing

/// The ciphers that libsrtp2 uses after start, against the RFCs' own vectors.
@Suite("Cipher vectors")
struct VectorTests {
    @Test("RFC 3711 appendix B.2: AES-CM keystream")
    func counterMode() throws {
        try SRTPLibrary.start()
        let key = bytes(hex: "2b7e151628aed2a6abf7158809cf4f3c f0f1f2f3f4f5f6f7f8f9fafbfcfd")
        var stream = [UInt8](repeating: 0, count: 32)
        try run(id: 1, key: key, tag: 0, iv: [UInt8](repeating: 0, count: 16), aad: [], &stream)
        #expect(stream == bytes(hex: "e03ead0935c95e80e166b16dd92b4eb4 d23513162b02d0f72a43a2fe4a5f97ab"))
    }

    @Test("RFC 7714 section 16.1.1: AES-128 GCM over an RTP packet")
    func galois() throws {
        try SRTPLibrary.start()
        // Key and salt as libsrtp2 joins them; the nonce is given whole.
        let key = bytes(hex: "000102030405060708090a0b0c0d0e0f 517569642070726f2071756f")
        var text = Array("Gallia est omnis divisa in partes tres".utf8)
        let tag = try run(
            id: 6, key: key, tag: 16, iv: bytes(hex: "51753c6580c2726f20718414"),
            aad: bytes(hex: "8040f17b8041f8d35501a0b2"), &text)
        #expect(
            text + tag
                == bytes(
                    hex: """
                        f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf
                        765ee4390cce
                        """))
    }

    @discardableResult
    private func run(
        id: UInt32, key: [UInt8], tag length: Int32, iv: [UInt8], aad: [UInt8], _ text: inout [UInt8]
    ) throws -> [UInt8] {
        let type = try #require(csrtp_cipher_type(id))
        var cipher: UnsafeMutablePointer<srtp_cipher_t>?
        try #require(srtp_cipher_type_alloc(type, &cipher, Int32(key.count), length) == srtp_err_status_ok)
        defer { srtp_cipher_dealloc(cipher) }
        #expect(srtp_cipher_init(cipher, key) == srtp_err_status_ok)
        var iv = iv
        #expect(srtp_cipher_set_iv(cipher, &iv, Int32(srtp_direction_encrypt.rawValue)) == srtp_err_status_ok)
        if !aad.isEmpty { #expect(srtp_cipher_set_aad(cipher, aad, UInt32(aad.count)) == srtp_err_status_ok) }
        var count = UInt32(text.count)
        #expect(srtp_cipher_encrypt(cipher, &text, &count) == srtp_err_status_ok)
        var tag = [UInt8](repeating: 0, count: Int(length))
        var written: UInt32 = 0
        if length > 0 { #expect(srtp_cipher_get_tag(cipher, &tag, &written) == srtp_err_status_ok) }
        return tag
    }
}
